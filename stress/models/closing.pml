/* How a LAB's life ends while its next one begins. Functions, by the steps of `thread`:
 *   lib/lab/closing.cc      close_lab CLOSE; help_close HELP to RELEASE
 *   lib/lab/registry.cc     acquire_lab, try_activate ACTIVATE; try_release RELEASE, LIST
 *   lib/lab/attach.cc       clear CLEAR, CLEAR_SLOT; is_ready READY
 *   lib/lab/repair.cc       examine EXAMINE_CAS and in IDLE; inspect INSPECT...
 *   lib/lab/transitions.cc  evaluate EVALUATE to TO_REUSABLE, release_span REMOVE to PUT_IN_POOL; publish PUBLISH...;
 *                           retire RETIRE to LEAVE; claim CLAIM...; drain_one_reusable FIND, DRAIN_REMOVE,
 *                           DRAIN_LOOK;
 *                           take_reusable TAKE; adopt_one, adopt ADOPT...
 *   lib/lab/allocate.cc     acquire_span TAKE to OPEN_ANCHOR; allocate_slow INSTALL, INSTALLED, LEAVE_HOT
 *   lib/lab/deallocate.cc   deallocate_remote_slow FREE_OWNER to PUSHED
 * Words: phase and generation are Lab::state; hot_slot Lab::hot, NONE the dummy; member Lab::reusable; offered
 * the_orphans; listed Registry::free_. A span's anchor is state, count, version, shared. Lives are numbered by their
 * generation; OTHER is a LAB that stays active.
 *
 * A user whose life 1 has span 0 hot and span 1 reusable, acquires WORK1 spans and exits; NEWCOMERS acquire the LAB
 * when it
 * is listed, clear it, acquire WORK2 spans or more, and exit or go on to live; HELPERS, threads of other LABs,
 * examine the
 * LAB or inspect a span (INSPECTS), HELPS times each; a freer frees FREES blocks of either span, with a LAB (retires,
 * adopts) or without. Each may sleep between any two steps, into any later life. DEATHS threads die before any step;
 * then,
 * when all others rest, one whole round of repair is made, as a death requests.
 *
 * Proved, where pan finds no error:
 *   retire and drain change no span of a life that goes on (LEAVE, CLAIM_CAS), only the owner one of its own
 *   each life begins and ends once, by one thread (acquired, freed); the LAB ends listed, or its owner lives
 *   no span is lost: at the end each is in the pool; or hot in the slot of a living life; or cooling, and with more
 *   than T
 *     blocks free in its living owner's set, or on offer; one per death may be missing from the pool
 *   a span becomes free only when none of its blocks is live, enters the pool once, and no free finds it free
 *   a hazard slot of an ended life is taken over once, and only then (HAZARDS)
 *   nobody waits; with pan -l no cycle: calls are counted in the state, so a cycle is one in which nobody ends a call
 *
 * Left out, and why that is sound:
 *   local word, limit, refill: span.pml has their races. Here a span's count is one word with its anchor, C = 2, T =
 *   0.
 *   finish_take and pop_for_install of retire are thus no steps.
 *   hints of sets: set.pml; here put, remove, find and take are one step, as their fetch_or and fetch_and are
 *   other size classes and LABs: same code, words of their own
 *   how a death is known (is_dead, fork.h): a dead thread is known as dead at once, no other ever is. Epochs change
 *   only
 *   the tid in the state word, by its thread.
 *   handlers in clear and in allocate_slow: stress/schedule and stress/interruption have them
 * Sequentially consistent: every change of state, anchor and owner is a seq_cst CAS, is_active, anchors and set
 * operations are seq_cst. hot's loads are acquire, owner's relaxed: too old an owner is one whose anchor's version
 * has
 * moved on (open_hot), or one whose life is over (adoption), as span.h's I3 argues. Registry's RG3 orders a life
 * after the
 * one before.
 *
 * Two omissions are of the code as it was found, commit 183908b: BUG_INSPECT_ENDS_WITH_PUBLISH and
 * BUG_DRAIN_ENDS_WITH_PUBLISH. publish takes the span out of the set again when the owner's life ends meanwhile, and
 * counts on an evaluation behind it to offer the span; repair.cc's inspect and drain_one_reusable have none.
 */
#ifndef SPANS
#define SPANS 2
#endif
#ifndef HELPERS
#define HELPERS 1
#endif
#ifndef HELPS
#define HELPS 1                  /* calls of each helper */
#endif
#ifndef NEWCOMERS
#define NEWCOMERS 1
#endif
#ifndef WORK1
#define WORK1 0                  /* spans that the first user acquires before it exits */
#endif
#ifndef WORK2
#define WORK2 1                  /* and each later one */
#endif
#ifndef INSPECTS
#define INSPECTS 1               /* whether a repair of spans is due */
#endif
#ifndef FREES
#define FREES 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef HOT_COUNT
#define HOT_COUNT 1              /* free blocks of the span that is hot at first */
#endif
#ifndef HAZARDS
#define HAZARDS 0
#endif

#define CAPACITY 2
#define THRESHOLD 0
#define NONE 7                   /* no span; in the slot: the dummy */
#define NOBODY 0
#define OTHER 15                 /* a life of another LAB, which goes on */

mtype = {
    EXPECTED, FREE, HOT, FLOATING, REUSABLE,
    ACTIVE, CLOSING,
    USER, HELPER, FREER, FINAL,
    IDLE, END,
    EVALUATE, EVALUATE_OWNER, TO_FREE, REMOVE, DISOWN, PUT_IN_POOL, IS_ACTIVE, OFFER, TO_REUSABLE,
    PUBLISH, PUBLISH_ANCHOR, PUBLISH_ACTIVE, PUBLISH_PUT, PUBLISH_ACTIVE_STILL, PUBLISH_OWNER_STILL, PUBLISH_REMOVE,
    RETIRE, RETIRE_OWNER, LEAVE,
    CLAIM, CLAIM_OWNER, CLAIM_CAS,
    EXAMINE_CAS, HELP, TAKE_OVER, UNNAME, DRAIN, FIND, DRAIN_REMOVE, DRAIN_LOOK, RELEASE, LIST,
    CLOSE,
    INSPECT, INSPECT_OWNER, INSPECT_ACTIVE, INSPECT_AFTER,
    ACTIVATE, CLEAR, CLEAR_SLOT, READY,
    CLEAR_FOR_OWNER, TAKE, ADOPT_ONE, ADOPT_ACTIVE, ADOPT, ADOPT_CAS, GET, POP, VACATE, OPEN, OPEN_ANCHOR,
    INSTALL, INSTALLED, LEAVE_HOT,
    FREE_OWNER, FREE_ACTIVE, FREE_ADOPT, FREE_ADOPT_CAS, PUSH_LOCALLY, PUSH, PUSHED
};

/* LAB: state word, slot, set; the registry's list of the free. */
mtype phase = ACTIVE;
byte generation = 1;
bool listed;
byte hot_slot = 0;
bool member[SPANS];
/* The other LAB's set; the orphans on offer; the span-pool. */
bool other_member[SPANS];
bool offered[SPANS];
bool pooled[SPANS];
byte hazard_owner;               /* of a slot of one of the span-pool's stacks */

/* Spans: anchor (with the local word's count), owner. */
mtype state[SPANS];
byte count[SPANS];
byte version[SPANS];
bool shared[SPANS];
byte owner[SPANS];

/* Ghosts. */
byte live[SPANS];                /* blocks that a freer may free */
bool corpse[5];                  /* by generation: that life's thread is dead */
byte freed[5];
byte acquired[5];
byte taken_over[16];
byte resting;                    /* threads that ended or died */
bool struck[5];
byte deaths;

#if FREES > 0
#define THREADS (2 + HELPERS + NEWCOMERS)
#else
#define THREADS (1 + HELPERS + NEWCOMERS)
#endif
#define is_active(o) ((o) == OTHER || ((o) != NOBODY && phase == ACTIVE && generation == (o)))
#define is_cooling(t) ((t) == FLOATING || (t) == REUSABLE)
#define is_seen(x) (state[x] == t && count[x] == n && version[x] == w && shared[x] == m)

inline look(x) {
    t = state[x]; n = count[x]; w = version[x]; m = shared[x]
}
inline forget() {
    t = EXPECTED; n = 0; w = 0; m = false
}
/* Between calls: nothing is remembered but the thread's life. */
inline rest() {
    forget(); o = NOBODY; s = NONE; hand = NONE; gone = NOBODY;
    after_evaluate = END; after_publish = END; after_retire = END; for_owner = false; pc = IDLE
}
inline end_evaluate() {
    forget();
    o = NOBODY;
    pc = after_evaluate;
    after_evaluate = END;
    if :: pc == IDLE -> rest() :: else fi
}
inline call_evaluate(back) {
    after_evaluate = back; pc = EVALUATE; forget(); o = NOBODY
}
inline end_publish() {
    o = NOBODY;
    pc = after_publish;
    after_publish = END;
    if :: pc == IDLE -> rest() :: else fi
}
inline call_publish(back) {
    after_publish = back; pc = PUBLISH; o = NOBODY
}
/* The ends of set operations that concern the owner's LAB. */
inline put_member(x, o) {
    if :: o == OTHER -> other_member[x] = true :: else -> member[x] = true fi
}
inline remove_member(x, o) {
    if :: o == OTHER -> other_member[x] = false :: else -> member[x] = false fi
}

inline check() {
    d_step {
        assert(phase != CLOSING);
        assert(phase == FREE -> listed : !corpse[generation]);
        for (n : 1 .. generation) {
            assert(acquired[n] == 1 && freed[n] == (n < generation || phase == FREE -> 1 : 0));
            assert(hazard_owner != n || is_active(n))
        }
        n = 0;
        for (s : 0 .. SPANS - 1) {
            o = owner[s];
            if
            :: state[s] == FREE ->
                assert(o == NOBODY || deaths > 0);
                if :: !pooled[s] -> n++ :: else fi
            :: state[s] == HOT -> assert(!pooled[s] && is_active(o) && hot_slot == s)
            :: else ->
                assert(!pooled[s] && is_cooling(state[s]) && count[s] < CAPACITY);
                if
                :: count[s] > THRESHOLD && is_active(o) ->
                    assert(state[s] == REUSABLE && (o == OTHER -> other_member[s] : member[s]))
                :: count[s] > THRESHOLD && !is_active(o) -> assert(offered[s])
                :: else
                fi
            fi
        }
        assert(n <= deaths)
    }
}

proctype thread(byte id; mtype role; byte me; byte calls) {
    mtype pc = IDLE;
    mtype t = EXPECTED;          /* the anchor seen */
    byte n, w;
    bool m;
    byte o;                      /* owner seen */
    byte s = NONE;               /* span at hand */
    byte hand = NONE;            /* hot and the caller's alone */
    byte gone;                   /* the life that closes */
    mtype after_evaluate = END;
    mtype after_publish = END;
    mtype after_retire = END;
    bool for_owner;

    {
    do
    /* evaluate */
    :: d_step { pc == EVALUATE -> look(s); if :: is_cooling(t) -> pc = EVALUATE_OWNER :: else -> end_evaluate() fi }
    :: d_step { pc == EVALUATE_OWNER ->
            o = owner[s];
            if
            :: n == CAPACITY -> pc = TO_FREE
            :: n <= THRESHOLD -> end_evaluate()
            :: else -> pc = IS_ACTIVE
            fi }
    :: d_step { pc == TO_FREE ->
            if
            :: is_seen(s) ->
                assert(live[s] == 0);
                state[s] = FREE; count[s] = 0; version[s]++; shared[s] = false;
                if :: t == REUSABLE && o != NOBODY -> pc = REMOVE :: else -> pc = DISOWN fi
            :: else -> look(s); if :: is_cooling(t) -> pc = EVALUATE_OWNER :: else -> end_evaluate() fi
            fi }
    :: d_step { pc == REMOVE -> remove_member(s, o); pc = DISOWN }
    :: d_step { pc == DISOWN -> owner[s] = NOBODY; pc = PUT_IN_POOL }
    :: d_step { pc == PUT_IN_POOL -> assert(state[s] == FREE && !pooled[s]); pooled[s] = true; end_evaluate() }
    :: d_step { pc == IS_ACTIVE ->
            if
            :: !is_active(o) -> pc = OFFER
            :: else -> if :: t == FLOATING -> pc = TO_REUSABLE :: else -> end_evaluate() fi
            fi }
    :: d_step { pc == OFFER -> offered[s] = true; end_evaluate() }
    :: d_step { pc == TO_REUSABLE ->
            if
            :: is_seen(s) -> state[s] = REUSABLE; version[s]++; forget(); call_publish(EVALUATE)
            :: else -> look(s); if :: is_cooling(t) -> pc = EVALUATE_OWNER :: else -> end_evaluate() fi
            fi }

    /* publish */
    :: d_step { pc == PUBLISH -> o = owner[s]; pc = PUBLISH_ANCHOR }
    :: d_step { pc == PUBLISH_ANCHOR -> if :: state[s] == REUSABLE -> pc = PUBLISH_ACTIVE :: else -> end_publish() fi }
    :: d_step { pc == PUBLISH_ACTIVE -> if :: is_active(o) -> pc = PUBLISH_PUT :: else -> end_publish() fi }
    :: d_step { pc == PUBLISH_PUT -> put_member(s, o); pc = PUBLISH_ACTIVE_STILL }
    :: d_step { pc == PUBLISH_ACTIVE_STILL ->
            if :: is_active(o) -> pc = PUBLISH_OWNER_STILL :: else -> pc = PUBLISH_REMOVE fi }
    :: d_step { pc == PUBLISH_OWNER_STILL -> if :: owner[s] == o -> end_publish() :: else -> pc = PUBLISH_REMOVE fi }
    :: d_step { pc == PUBLISH_REMOVE -> remove_member(s, o); o = NOBODY; pc = PUBLISH }

    /* retire */
    :: d_step { pc == RETIRE -> look(s); if :: t == HOT -> pc = RETIRE_OWNER :: else -> call_evaluate(after_retire) fi }
    :: d_step { pc == RETIRE_OWNER ->
            if
#ifndef BUG_RETIRE_OF_ANYONE
            :: owner[s] != gone -> call_evaluate(after_retire)
#endif
            :: else -> pc = LEAVE
            fi }
    :: d_step { pc == LEAVE ->
            if
            :: is_seen(s) ->
                assert(owner[s] == gone && !is_active(gone));
                state[s] = FLOATING; version[s]++; shared[s] = false;
                call_evaluate(after_retire)
            :: else -> pc = RETIRE
            fi }

    /* claim: of who drains, or of the owner */
    :: d_step { pc == CLAIM -> look(s); pc = CLAIM_OWNER }
    :: d_step { pc == CLAIM_OWNER ->
            if
#ifndef BUG_CLAIM_OF_ANYONE
            :: t != REUSABLE || owner[s] != (for_owner -> me : gone) ->
#else
            :: t != REUSABLE ->
#endif
                call_evaluate((for_owner -> TAKE : DRAIN_REMOVE))
            :: else -> o = owner[s]; pc = CLAIM_CAS
            fi }
    :: d_step { pc == CLAIM_CAS ->
            if
            :: is_seen(s) ->
                /* Who drains may find that an heir has adopted the span since; it evaluates, and so does the heir. */
                assert(for_owner -> owner[s] == me && is_active(me) : !is_active(o) && o != NOBODY);
                o = NOBODY;
                version[s]++;
                if
                :: for_owner && n > THRESHOLD -> state[s] = HOT; forget(); hand = s; s = NONE; pc = INSTALL
                :: else -> state[s] = FLOATING; call_evaluate((for_owner -> TAKE : DRAIN_REMOVE))
                fi
            :: else -> look(s); o = NOBODY; pc = CLAIM_OWNER
            fi }

    /* examine and help_close of life `gone` */
    :: d_step { pc == EXAMINE_CAS ->
            if :: phase == ACTIVE && generation == gone -> phase = CLOSING; pc = HELP :: else -> rest() fi }
    :: d_step { pc == HELP ->
            s = hot_slot;
            if
            :: s == NONE -> pc = TAKE_OVER
#ifndef BUG_HELPER_CLEARS_SLOT
            :: else -> after_retire = TAKE_OVER; pc = RETIRE
#else
            :: else -> after_retire = CLEAR_FOR_OWNER; pc = RETIRE
#endif
            fi }
#ifdef BUG_HELPER_CLEARS_SLOT
    :: d_step { pc == CLEAR_FOR_OWNER -> hot_slot = NONE; pc = TAKE_OVER }
#endif
    :: d_step { pc == TAKE_OVER ->
            s = NONE; after_retire = END;
            if
#ifndef BUG_TAKE_OVER_OF_ANYONE
            :: me != gone && hazard_owner == gone ->
#else
            :: me != gone && hazard_owner != NOBODY ->
#endif
                assert(!is_active(hazard_owner));
                taken_over[hazard_owner]++;
                assert(taken_over[hazard_owner] == 1);
                hazard_owner = me;
                pc = UNNAME
            :: else -> pc = DRAIN
            fi }
    :: d_step { pc == UNNAME -> hazard_owner = NOBODY; pc = DRAIN }
    :: d_step { pc == DRAIN ->
            if
#ifndef BUG_DRAINS_LATER_LIFE
            :: phase == CLOSING && generation == gone -> pc = FIND
            :: else -> pc = RELEASE
#else
            :: true -> pc = FIND
#endif
            fi }
    :: atomic { pc == FIND ->
            s = NONE;
            if
            :: member[0] -> s = 0
            :: member[1] -> s = 1
            :: !member[0] && !member[1]
            fi;
            for_owner = false;
            pc = (s == NONE -> RELEASE : CLAIM) }
    :: d_step { pc == DRAIN_REMOVE -> member[s] = false;
#ifndef BUG_NO_LOOK_BEHIND
            pc = DRAIN_LOOK
#else
            s = NONE; pc = DRAIN
#endif
            }
    :: d_step { pc == DRAIN_LOOK ->
            if
            :: state[s] == REUSABLE ->
#ifndef BUG_DRAIN_ENDS_WITH_PUBLISH
                after_evaluate = DRAIN; call_publish(EVALUATE)
#else
                call_publish(DRAIN)
#endif
            :: else -> pc = DRAIN
            fi }
    :: d_step { pc == RELEASE ->
            s = NONE;
            if
#ifndef BUG_RELEASE_OF_ANY_LIFE
            :: phase == CLOSING && generation == gone ->
#else
            :: phase != FREE ->
#endif
                phase = FREE; freed[generation]++; assert(freed[generation] == 1 && generation == gone); pc = LIST
            :: else -> me = (me == gone -> NOBODY : me); rest()
            fi }
    :: d_step { pc == LIST -> listed = true; me = (me == gone -> NOBODY : me); rest() }

    /* inspect, of repair */
    :: d_step { pc == INSPECT -> look(s);
            if :: t == HOT || is_cooling(t) -> pc = INSPECT_OWNER :: else -> rest() fi }
    :: d_step { pc == INSPECT_OWNER -> o = owner[s]; gone = o; pc = INSPECT_ACTIVE }
    :: d_step { pc == INSPECT_ACTIVE ->
            if
            :: t == HOT ->
                if :: !is_active(o) -> after_retire = IDLE; forget(); o = NOBODY; pc = RETIRE :: else -> rest() fi
            :: else -> for_owner = is_active(o); call_evaluate(INSPECT_AFTER)
            fi }
    :: d_step { pc == INSPECT_AFTER ->
            if
            :: for_owner && state[s] == REUSABLE -> for_owner = false;
#ifndef BUG_INSPECT_ENDS_WITH_PUBLISH
                after_evaluate = IDLE; call_publish(EVALUATE)
#else
                call_publish(IDLE)
#endif
               
            :: else -> for_owner = false; rest()
            fi }

    /* close_lab */
    :: d_step { pc == CLOSE ->
            if
            :: phase == ACTIVE && generation == me -> phase = CLOSING; gone = me; pc = HELP
            :: else -> assert(false)      /* only the dead are found dead */
            fi }

    /* acquire_lab and clear; `listed` is taken in IDLE */
    :: d_step { pc == ACTIVATE ->
            if
            :: phase == FREE ->
                phase = ACTIVE; generation++;
                me = generation;
                acquired[me]++;
                assert(acquired[me] == 1);
                pc = CLEAR
            :: else -> rest()
            fi }
    :: d_step { pc == CLEAR ->
#ifndef BUG_NO_CLEAR
            s = hot_slot;
#endif
            if
            :: s == NONE -> pc = READY
            :: else -> pc = CLEAR_SLOT
            fi }
    :: d_step { pc == CLEAR_SLOT ->
            if :: owner[s] != me && hot_slot == s -> hot_slot = NONE :: else fi;
            s = NONE;
            pc = READY }
    :: d_step { pc == READY -> rest() }

    /* acquire_span, and what allocate_slow does with it */
    :: atomic { pc == TAKE ->
            s = NONE;
            if
            :: member[0] -> s = 0; member[0] = false
            :: member[1] -> s = 1; member[1] = false
            :: !member[0] && !member[1]
            fi;
            for_owner = true;
            pc = (s == NONE -> ADOPT_ONE : CLAIM) }
    :: atomic { pc == ADOPT_ONE ->
            s = NONE;
            if
            :: offered[0] -> s = 0; offered[0] = false
            :: offered[1] -> s = 1; offered[1] = false
            :: !offered[0] && !offered[1]
            fi;
            pc = (s == NONE -> (HAZARDS -> GET : POP) : ADOPT) }
    :: d_step { pc == ADOPT -> gone = owner[s]; pc = ADOPT_ACTIVE }
    :: d_step { pc == ADOPT_ACTIVE ->
            if
            :: is_active(gone) -> s = NONE; gone = NOBODY; pc = ADOPT_ONE
            :: !is_active(gone) && is_cooling(state[s]) && gone != NOBODY -> pc = ADOPT_CAS
            :: else -> gone = NOBODY; call_evaluate(ADOPT_ONE)
            fi }
    :: d_step { pc == ADOPT_CAS ->
            if
            :: owner[s] == gone ->
                assert(!is_active(gone));
                owner[s] = me;
                gone = NOBODY;
                after_evaluate = TAKE;
                call_publish(EVALUATE)
            :: else -> gone = NOBODY; call_evaluate(ADOPT_ONE)
            fi }
#if HAZARDS
    :: d_step { pc == GET -> if :: hazard_owner == NOBODY -> hazard_owner = me; o = me :: else fi; pc = POP }
    :: d_step { pc == VACATE ->
            if :: o == me -> assert(hazard_owner == me); hazard_owner = NOBODY; o = NOBODY :: else fi;
            if :: s == NONE -> rest() :: else -> pc = OPEN fi }
#endif
    :: atomic { pc == POP ->
            if
            :: pooled[0] -> s = 0; pooled[0] = false
            :: pooled[1] -> s = 1; pooled[1] = false
            :: !pooled[0] && !pooled[1]
            fi;
#if HAZARDS
            pc = VACATE
#else
            if :: s == NONE -> rest() :: else -> pc = OPEN fi
#endif
            }
    /* open_hot; the local word, the class and the rest are before */
    :: d_step { pc == OPEN -> assert(state[s] == FREE && live[s] == 0); owner[s] = me; pc = OPEN_ANCHOR }
    :: d_step { pc == OPEN_ANCHOR ->
            state[s] = HOT; count[s] = CAPACITY; version[s]++; shared[s] = false; hand = s; s = NONE; pc = INSTALL }
    :: d_step { pc == INSTALL -> s = hot_slot; hot_slot = hand; hand = NONE; pc = INSTALLED }
    :: d_step { pc == INSTALLED ->      /* a block out of the new one */
            if :: count[hot_slot] > 0 -> count[hot_slot]--; live[hot_slot]++ :: else fi;
            if :: s == NONE -> rest() :: else -> pc = LEAVE_HOT fi }
    :: d_step { pc == LEAVE_HOT ->
            assert(state[s] == HOT && owner[s] == me);
            state[s] = FLOATING; version[s]++; shared[s] = false;
            call_evaluate(IDLE) }

    /* deallocate_remote_slow, by who has the other LAB */
    :: d_step { pc == FREE_OWNER ->
            o = owner[s];
            if
            :: o == OTHER -> pc = PUSH_LOCALLY
            :: else -> pc = FREE_ACTIVE
            fi }
    :: d_step { pc == FREE_ACTIVE ->
            if
            :: is_active(o) -> pc = PUSH
            :: else -> gone = o; after_retire = FREE_ADOPT; pc = RETIRE
            fi }
    :: d_step { pc == FREE_ADOPT ->
            if :: is_cooling(state[s]) && gone != NOBODY -> pc = FREE_ADOPT_CAS :: else -> pc = PUSH fi }
    :: d_step { pc == FREE_ADOPT_CAS ->
            if
            :: owner[s] == gone -> assert(!is_active(gone)); owner[s] = OTHER; call_publish(PUSH_LOCALLY)
            :: else -> pc = PUSH
            fi }
    :: d_step { pc == PUSH_LOCALLY ->
            count[s]++;
            assert(count[s] + live[s] <= CAPACITY);
            call_evaluate(IDLE) }
    :: d_step { pc == PUSH -> look(s); assert(t == HOT || is_cooling(t)); pc = PUSHED }
    :: d_step { pc == PUSHED ->
            if
            :: is_seen(s) ->
                count[s]++;
                assert(count[s] + live[s] <= CAPACITY);
                if
                :: is_cooling(t) && !m ->
                    shared[s] = true; version[s]++; state[s] = REUSABLE;
                    if
                    :: t == FLOATING -> after_evaluate = IDLE; call_publish(EVALUATE)
                    :: else -> call_evaluate(IDLE)
                    fi
                :: is_cooling(t) && m -> call_evaluate(IDLE)
                :: else -> rest()
                fi;
                forget()
            :: else -> pc = PUSH
            fi }

    /* What a thread does next. */
    :: atomic { pc == IDLE && role == USER && me != NOBODY ->
            rest();
            if
            :: calls > 0 -> calls--; pc = TAKE
            :: calls == 0 -> pc = CLOSE
            :: calls == 0 && me > 1 -> resting++; break      /* goes on to live */
            fi }
    :: atomic { pc == IDLE && role == USER && me == NOBODY && calls > 0 && listed -> listed = false; pc = ACTIVATE }
    :: atomic { pc == IDLE && role == USER && me == NOBODY && calls > 0 -> calls = 0 }      /* another LAB */
    :: atomic { pc == IDLE && role == USER && me == NOBODY && calls == 0 -> resting++; break }
    :: atomic { pc == IDLE && role == HELPER && calls > 0 ->
            calls--;
            rest();
            if
            :: phase == FREE -> pc = LIST
            :: phase == ACTIVE && corpse[generation] -> gone = generation; pc = EXAMINE_CAS
            :: phase == CLOSING -> gone = generation; pc = HELP
            :: phase == ACTIVE && !corpse[generation]
#if INSPECTS
            :: s = 0; pc = INSPECT
            :: s = 1; pc = INSPECT
#endif
            fi }
    :: atomic { pc == IDLE && role == HELPER && calls == 0 -> resting++; break }
    :: atomic { pc == IDLE && role == FREER && calls > 0 ->
            calls--;
            rest();
            if
            :: live[0] > 0 -> live[0]--; s = 0; pc = FREE_OWNER
            :: live[0] > 0 -> live[0]--; s = 0; pc = PUSH
            :: live[1] > 0 -> live[1]--; s = 1; pc = FREE_OWNER
            :: live[1] > 0 -> live[1]--; s = 1; pc = PUSH
            :: live[0] == 0 && live[1] == 0
            fi }
    :: atomic { pc == IDLE && role == FREER && calls == 0 -> resting++; break }
    /* Fate, and what comes after: a whole round of repair if one died, then the count of everything. */
    :: atomic { pc == IDLE && role == FINAL && resting < THREADS && deaths < DEATHS ->
            deaths++;
            if
            :: !struck[0] -> struck[0] = true
#if THREADS > 1
            :: !struck[1] -> struck[1] = true
#endif
#if THREADS > 2
            :: !struck[2] -> struck[2] = true
#endif
#if THREADS > 3
            :: !struck[3] -> struck[3] = true
#endif
            fi }
    :: atomic { pc == IDLE && role == FINAL && resting == THREADS && deaths > 0 && calls > 0 ->
            calls--;
            rest();
            if
            :: calls == 2 && phase == FREE -> pc = LIST
            :: calls == 2 && phase == ACTIVE && corpse[generation] -> gone = generation; pc = EXAMINE_CAS
            :: calls == 2 && phase == ACTIVE && !corpse[generation]
            :: calls == 2 && phase == CLOSING -> gone = generation; pc = HELP
            :: calls < 2 -> s = calls; pc = INSPECT
            fi }
    :: atomic { pc == IDLE && role == FINAL && resting == THREADS && (deaths == 0 || calls == 0) -> check(); break }
    od
    }
#if DEATHS > 0
    unless {
        d_step {
            struck[id] ->
            resting++;
            if :: role == USER -> corpse[me] = true :: else fi;
            rest();
            calls = 0
        }
    }
#endif
}

init {
    atomic {
        state[0] = HOT; owner[0] = 1; count[0] = HOT_COUNT; live[0] = CAPACITY - HOT_COUNT;
        state[1] = REUSABLE; owner[1] = 1; count[1] = 1; live[1] = 1; shared[1] = true; member[1] = true;
        acquired[1] = 1;
        run thread(0, USER, 1, WORK1);
#if HELPERS > 0
        run thread(1, HELPER, OTHER, HELPS);
#endif
#if HELPERS > 1
        run thread(2, HELPER, OTHER, HELPS);
#endif
#if NEWCOMERS > 0
        run thread(1 + HELPERS, USER, NOBODY, WORK2 + 1);
#endif
#if NEWCOMERS > 1
        run thread(2 + HELPERS, USER, NOBODY, WORK2 + 1);
#endif
#if FREES > 0
        run thread(1 + HELPERS + NEWCOMERS, FREER, OTHER, FREES);
#endif
        run thread(THREADS, FINAL, OTHER, 3)
    }
}
