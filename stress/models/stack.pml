/* The span-pool's stack: HazardStack of lib/sync/hazard_stack.h, with hazard slots and parked elements. Its functions
 * here, by the steps of `thread`:
 *   pop        LOOK, RAISE, CLAIM (claim); HEAD, NAME, VALIDATE, LINK, TAKE; then end
 *   end        UNNAME, EMPTY, VACATE, then push
 *   push       USED, SCAN (slot_that_names); PUSH_HEAD, PUSH_LINK, PUSH (push_unnamed); PARK, SECOND_LOOK, TAKE_BACK
 *   take_over  TAKE_OVER, then end
 * Words: head and pushes are head_, used is used_; owner, named, parked a slot's; link an element's Link::of.
 *
 * A step is one access to a shared word, with what the thread does before the next one. Merged are only a load that a
 * CAS of the same word follows at once (claim's of owner and of used_, take_over's of owner), where the CAS decides,
 * and
 * the quick look of pop and the first load of take_over with the choice of the call.
 *
 * Threads 0 and 1, and 2, which with CLAIMANT2=0 is a handler of thread 0's, or a call of it that was jumped out of:
 * it
 * has the same claimant, and may run beside thread 0, which allows all that nesting does. Each makes CALLSn calls of
 * its
 * choice: pop, push of what it has, take_over of a dead claimant. LAST strikes: up to STOPS threads never go on,
 * DEATHS
 * claimants die with all their threads, before any step. When all rest it takes over what the dead left.
 *
 * Proved, where pan finds no error:
 *   no ABA: a pop that succeeds has read the link that the element has now (TAKE), so head becomes the next element
 *   I1: each element is in one place: every transfer starts from where the ghost `place` says it is
 *   at the end the stack holds, linked, exactly those that no one else has; with deaths, of a dead thread's no more
 *   are
 *     lost than MOST_IN_TRANSIT of one call, and what its slots held is back; with stops, one stays in each slot
 *   I3: no element is left in a vacant slot's cell, but one for each pusher that was struck before its second look:
 *   the
 *     slot's next claimant has it then
 *   nobody waits: when all others are struck the rest end, or the end would be an invalid one
 *   lock-freedom (pan -l): there are no progress labels, so any cycle is an error. Calls are counted in the state, so
 *   a
 *     cycle would be an execution in which, for ever, nobody ends a call.
 *
 * The hazard alone must do (COUNTS=1: head is the element alone, as if 2^40 pushes went by between any two looks).
 * Where
 * a pop goes without a slot (SLOTS less than threads, or SLOTLESS), the count alone must: COUNTS above the pushes of
 * the
 * run is exact, and HAZARD_ALONE=1 lets only these look at it. COUNTS=2 wraps, and must be found wrong.
 *
 * Sequentially consistent. The code is weaker in these places: head's loads and push's CAS are acquire and release,
 * but
 * every validation and every pop's CAS are seq_cst, as are named, used_ and the scan: of a name and the pop that
 * takes
 * the element out one comes first for all. The exchange of a cell before the second look is acq_rel: of two exchanges
 * of
 * one cell the later reads what the earlier released, so a pusher that comes after the owner's exchange sees the name
 * cleared. owner's release and acquire order one claimant after the other. A link that is read too new or too old
 * belongs
 * to a head that the CAS refuses, or is that of the validated name: nobody writes it while that stands (asserted).
 *
 * Left out: more than 3 slots and 4 elements (elements and slots are alike), and the span-pool's choice of stack,
 * whose
 * stacks share no word. Runs: docs/models.md.
 */
#ifndef ELEMENTS
#define ELEMENTS 3
#endif
#ifndef CALLS0
#define CALLS0 2
#endif
#ifndef CALLS1
#define CALLS1 4
#endif
#ifndef CALLS2
#define CALLS2 0
#endif
#ifndef CLAIMANT2
#define CLAIMANT2 2
#endif
#ifndef SLOTS
#define SLOTS 3
#endif
#ifndef COUNTS
#define COUNTS 1
#endif
#ifndef HAZARD_ALONE
#define HAZARD_ALONE 0
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef MOST_IN_TRANSIT
#define MOST_IN_TRANSIT 2
#endif

#define THREADS 3
#define LAST 3                   /* who closes when all others rest */
#define NO_SLOT SLOTS
#define NOBODY 0
#define NAME_OF(claimant) (claimant + 1)

mtype = {
    IDLE, LOOK, RAISE, CLAIM, HEAD, NAME, VALIDATE, LINK, TAKE, UNNAME, EMPTY, VACATE, TAKE_OVER,
    USED, SCAN, PUSH_HEAD, PUSH_LINK, PUSH, PARK, SECOND_LOOK, TAKE_BACK
};

/* The order of end's steps. */
#ifndef BUG_CELL_BEFORE_NAME
#define END UNNAME
#define AFTER_UNNAME EMPTY
#define AFTER_EMPTY VACATE
#else
#define END EMPTY
#define AFTER_EMPTY UNNAME
#define AFTER_UNNAME VACATE
#endif

/* The shared words. */
byte head;                       /* element; 0 = none */
byte pushes;                     /* the rest of that word, modulo COUNTS */
byte link[ELEMENTS + 1];
byte used;
byte owner[SLOTS];
byte named[SLOTS];
byte parked[SLOTS];

/* Ghosts: where each element is, what a thread has between its calls, and who runs no more. */
#define IN_STACK 0
#define IN_CELL(s) (1 + (s))
#define IN_HANDS(p) (8 + (p))
byte place[ELEMENTS + 1];
byte held[THREADS + 1];
bool finished[THREADS];
bool stopped[THREADS + 1];       /* by thread */
bool dead[THREADS + 1];          /* by claimant */
byte stops_left = STOPS;
byte deaths_left = DEATHS;
byte forgotten;

inline move(e, from, to) {
    assert(place[e] == from);
    place[e] = to
}

/* In p's hands, but not its caller's. */
inline count_in_transit() {
    u = 0;
    for (i : 1 .. ELEMENTS) {
        if :: place[i] == IN_HANDS(p) -> u++ :: else fi
    }
    assert(u <= held[p] + MOST_IN_TRANSIT);
    u = 0
}

inline go_back() {
    if
    :: v > 0 -> pc = TAKE_OVER
    :: else -> pc = IDLE; if :: got -> held[p]++; got = false :: else fi
    fi
}

/* push, which calls itself: `todo` has the callers' elements. */
inline go_on_pushing(element) {
    cur = element;
    if
    :: cur == 0 && depth > 0 -> depth--; cur = todo[depth]; todo[depth] = 0
    :: else
    fi;
    if :: cur != 0 -> pc = USED :: else -> go_back() fi
}

#define rests(p, c) (finished[p] || stopped[p] || dead[c])
#define all_rest (rests(0, 0) && rests(1, 1) && rests(2, CLAIMANT2))
#define is_left(s) (owner[s] != NOBODY && dead[owner[s] - 1])
#define is_forgotten(s) (owner[s] == NOBODY && parked[s] != 0)

/* A slot whose owner is dead, or one that is vacant but not empty: a pusher ended before its second look. */
inline select_left(s) {
    s = 0;
    do
    :: s < SLOTS && is_left(s) -> break
    :: s < SLOTS && is_forgotten(s) -> forgotten++; assert(forgotten <= STOPS + DEATHS); break
    :: s < SLOTS && !is_left(s) && !is_forgotten(s) -> s++
    :: s == SLOTS -> break
    od
}

/* Where all rest and nothing is left to take over. */
inline check() {
    d_step {
        for (i : 0 .. SLOTS - 1) {
            assert(owner[i] == NOBODY || (STOPS > 0 && owner[i] != NAME_OF(LAST)));
            assert(owner[i] != NOBODY || (named[i] == 0 && parked[i] == 0))
        }
        u = 0;
        for (i : 1 .. ELEMENTS) {
            if :: place[i] == IN_STACK -> u++ :: else fi
        }
        h = head;
        do
        :: h != 0 -> assert(place[h] == IN_STACK && u > 0); u--; h = link[h]
        :: else -> break
        od;
        assert(u == 0);
        for (v : 0 .. THREADS) {
            u = 0;
            for (i : 1 .. ELEMENTS) {
                if :: place[i] == IN_HANDS(v) -> u++ :: else fi
            }
            if
            :: v == LAST || finished[v] -> assert(u == held[v])
            :: else -> assert(u <= held[v] + MOST_IN_TRANSIT)
            fi
        }
    }
}

proctype thread(byte p; byte c; byte calls) {
    mtype pc = IDLE;
    byte h, n, l, cur, former, i, u, v, depth;
    byte slot = NO_SLOT;
    byte todo[2];
    bool got;

    {
    do
    /* pop */
    :: d_step { pc == LOOK && i == SLOTS -> i = 0; pc = HEAD }
    :: d_step { pc == LOOK && i < SLOTS -> if :: owner[i] == NOBODY -> pc = RAISE :: else -> i++ fi }
    :: d_step { pc == RAISE ->
#ifndef BUG_NOT_IN_USE
            if :: used <= i -> used = i + 1 :: else fi;
#endif
            pc = CLAIM }
    :: d_step { pc == CLAIM ->
            if
            :: owner[i] == NOBODY -> owner[i] = NAME_OF(c); slot = i; i = 0; pc = HEAD
            :: else -> i++; pc = LOOK
            fi }
    :: d_step { pc == HEAD ->
            if
            :: head == 0 -> if :: slot != NO_SLOT -> pc = END :: else -> go_back() fi
            :: else -> h = head; n = pushes; if :: slot != NO_SLOT -> pc = NAME :: else -> pc = LINK fi
            fi }
    :: d_step { pc == NAME ->
            named[slot] = h;
#ifndef BUG_NO_VALIDATION
            pc = VALIDATE
#else
            pc = LINK
#endif
            }
    :: d_step { pc == VALIDATE -> if :: head == h && pushes == n -> pc = LINK :: else -> h = 0; n = 0; pc = HEAD fi }
    :: d_step { pc == LINK -> l = link[h]; pc = TAKE }
    :: d_step { pc == TAKE ->
            if
#ifdef BUG_NAME_ENDS_EARLY
            :: slot != NO_SLOT && named[slot] != 0 -> named[slot] = 0
#endif
            :: else ->
                if
                :: head == h && (pushes == n || (HAZARD_ALONE && slot != NO_SLOT)) ->
                    assert(l == link[h]);
                    move(h, IN_STACK, IN_HANDS(p));
                    head = l;
                    got = true;
                    if :: slot != NO_SLOT -> pc = END :: else -> go_back() fi
                :: else -> pc = HEAD
                fi;
                h = 0; n = 0; l = 0
            fi }

    /* end */
    :: d_step { pc == UNNAME -> named[slot] = 0; pc = AFTER_UNNAME }
    :: d_step { pc == EMPTY ->
#ifndef BUG_NO_RESCUE
            cur = parked[slot];
            parked[slot] = 0;
            if :: cur != 0 -> move(cur, IN_CELL(slot), IN_HANDS(p)) :: else fi;
#endif
            pc = AFTER_EMPTY }
    :: d_step { pc == VACATE -> owner[slot] = NOBODY; slot = NO_SLOT; go_on_pushing(cur) }

    /* take_over: the slots below v are still to be looked at */
    :: d_step { pc == TAKE_OVER ->
            v--;
            if
#ifndef BUG_TAKE_OVER_OF_ANYONE
            :: owner[v] == NAME_OF(l) ->
#else
            :: owner[v] != NOBODY ->
#endif
                owner[v] = NAME_OF(c); slot = v; pc = END
            :: else -> go_back()
            fi;
            if :: v == 0 -> l = 0 :: else fi }

    /* push */
    :: d_step { pc == USED -> u = used; if :: u == 0 -> pc = PUSH_HEAD :: else -> pc = SCAN fi }
    :: d_step { pc == SCAN ->
            if
#ifndef BUG_NAMES_DO_NOT_COUNT
            :: named[i] == cur -> u = 0; pc = PARK
#endif
            :: else -> i++; if :: i == u -> u = 0; i = 0; pc = PUSH_HEAD :: else fi
            fi }
    :: d_step { pc == PUSH_HEAD -> h = head; n = pushes; pc = PUSH_LINK }
    :: d_step { pc == PUSH_LINK -> assert(place[cur] == IN_HANDS(p)); link[cur] = h; pc = PUSH }
    :: d_step { pc == PUSH ->
            if
            :: head == h && pushes == n ->
                move(cur, IN_HANDS(p), IN_STACK);
                head = cur;
                pushes = (n + 1) % COUNTS;
                h = 0; n = 0;
                go_on_pushing(0)
            :: else -> h = head; n = pushes; pc = PUSH_LINK
            fi }
    :: d_step { pc == PARK ->
            former = parked[i];
            parked[i] = cur;
            move(cur, IN_HANDS(p), IN_CELL(i));
            if :: former != 0 -> move(former, IN_CELL(i), IN_HANDS(p)) :: else fi;
            pc = SECOND_LOOK }
    :: d_step { pc == SECOND_LOOK ->
            if
#ifndef BUG_NO_SECOND_LOOK
            :: named[i] != cur -> pc = TAKE_BACK
#endif
            :: else -> i = 0; go_on_pushing(former); former = 0
            fi }
    :: d_step { pc == TAKE_BACK ->
            if
            :: parked[i] == cur ->
                move(cur, IN_CELL(i), IN_HANDS(p));
#ifndef BUG_BACK_TO_FORMER
                parked[i] = 0;
                if :: former != 0 -> todo[depth] = cur; depth++; cur = former :: else fi;
                count_in_transit();
#else
                parked[i] = former;
                if :: former != 0 -> move(former, IN_HANDS(p), IN_CELL(i)) :: else fi;
#endif
            :: else -> cur = former
            fi;
            i = 0; former = 0;
            go_on_pushing(cur) }

    /* The thread's own choice. */
    :: atomic { pc == IDLE && calls > 0 ->
            calls--;
            if
            :: head != 0 -> pc = LOOK
#ifdef SLOTLESS
            :: head != 0 -> pc = HEAD      /* for a caller without a LAB */
#endif
            :: held[p] > 0 ->
                if
                :: place[1] == IN_HANDS(p) -> cur = 1
                :: place[2] == IN_HANDS(p) -> cur = 2
#if ELEMENTS > 2
                :: place[3] == IN_HANDS(p) -> cur = 3
#endif
#if ELEMENTS > 3
                :: place[4] == IN_HANDS(p) -> cur = 4
#endif
                fi;
                held[p]--;
                pc = USED
#if DEATHS > 0
            :: dead[0] -> l = 0; v = used; go_back()
            :: dead[1] -> l = 1; v = used; go_back()
            :: dead[2] -> l = 2; v = used; go_back()
#endif
            :: else
            fi }
    :: pc == IDLE && calls == 0 && p < THREADS -> finished[p] = true; break

    /* Fate, and then the end. */
    :: atomic { p == LAST && pc == IDLE && !all_rest && stops_left > 0 ->
            stops_left--;
            if
            :: !rests(0, 0) -> stopped[0] = true
            :: !rests(1, 1) -> stopped[1] = true
            :: !rests(2, CLAIMANT2) -> stopped[2] = true
            fi }
    :: atomic { p == LAST && pc == IDLE && deaths_left > 0 ->
            deaths_left--;
            if
            :: !dead[0] -> dead[0] = true
            :: !dead[1] -> dead[1] = true
#if CLAIMANT2 == 2
            :: !dead[2] -> dead[2] = true
#endif
            fi }
    :: atomic { p == LAST && pc == IDLE && all_rest ->
            select_left(slot);
            if
            :: slot == NO_SLOT -> check(); break
            :: else -> owner[slot] = NAME_OF(c); pc = END
            fi }
    od
    }
#if STOPS + DEATHS > 0
    unless {
        d_step {
            stopped[p] || dead[c] ->
            pc = IDLE; h = 0; n = 0; l = 0; cur = 0; former = 0; i = 0; u = 0; v = 0; depth = 0; slot = NO_SLOT;
            todo[0] = 0; todo[1] = 0; got = false; calls = 0
        }
    }
#endif
}

init {
    byte e;

    atomic {
        for (e : 1 .. ELEMENTS) {
            link[e] = e - 1
        }
        head = ELEMENTS;
        e = 0;
        run thread(0, 0, CALLS0);
        run thread(1, 1, CALLS1);
#if CALLS2 > 0
        run thread(2, CLAIMANT2, CALLS2);
#else
        finished[2] = true;
#endif
        run thread(LAST, LAST, 0)
    }
}
