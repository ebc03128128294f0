/* One span and its owner: the words of lib/span/span.h, and who changes them, with the owner's store buffer.

Words (span.h, anchor.h, local_word.h; lab.h, index_set.h)
  a_*        anchor: state, shared mark, remote list; its version by age, see below
  l_list     local word as memory has it: the free list as a set of blocks; l_parity
  owner_view, buffer   the same as the owner sees it: its plain stores wait in a FIFO buffer that drains at any moment
             (x86-TSO; the commit of rseq_push and rseq_pop). A locked instruction of the owner's waits for the drain.
  limit_*    limit: bound, stay (by age)
  take_*     the take record: list, version (by age), parity
  owned      owner word: the LAB's life, or nobody
  in_slot    the LAB's hot slot shows this span, else some other one, which is not modelled
  member     the span is in the LAB's reusable set; offered: in the_orphans; alive: the LAB is active; in_pool

Functions (each step is one access to a shared word): Span::open_hot, remote_push, refill, finish_take,
pop_for_install, leave_hot, refresh_limit; evaluate, release_span, publish, claim, take_reusable, push_remotely,
drain_one_reusable, retire; allocate_slow and acquire_span, deallocate, deallocate_limit_slow, deallocate_remote_slow;
close_lab, help_close, inspect.

Versions are not bounded here: no word has one. Instead each copy that somebody holds knows by how many changes of the
anchor's version it is old: NEXT, CURRENT, PREVIOUS, OLD. A CAS of the anchor succeeds if its expected value is CURRENT
and has the same count (a push changes no version, and count only grows); of the local word and the take record, if
nobody has written since (their values do not return). Two OLD stays of the limit may be equal or not: both are tried.
So the model has every number of stays, in a finite number of states. That a version of 32 bits (31) is enough is not
shown. VERSION_WRAPS: a version of 2 bits; that this is wrong takes two freers, and has not been seen yet.

Checked
  A1 a block handed out is nobody's: not live, in no list
  A2 the span becomes free only with all its blocks free, by one winner per stay, and is in the pool once
  A3 no free of a live block is refused (the fatal() of remote_push, evaluate, check_block)
  A4 whenever nobody is in a call and the buffer is empty: a hot span is in the slot; a floating one has at most T
     blocks free; a reusable one is in the set of its owner; a free one is in the pool. If the owner's life is over: it
     is not hot, not with all blocks free, and on offer if more than T are. So nothing is lost whatever the calls were.

Left out, and why that is sound
  - The lists' order, links, the bump mark: a list is a set; a version and a count identify it.
  - Other spans: they share no word with this one but the slot and the set, of which this one has its own bit; set.pml
    has the set with its hints. The stacks of the pool: another model's; here in_pool is one bit.
  - Handlers of the owner's thread. JUMPS: it may leave a refill at any step for good (siglongjmp), so that a take stays
    pending beside frees and mallocs. A slot CAS that a handler overtook is a choice of acquire. Handlers at every
    instruction: stress/schedule, stress/interruption.
  - Adoption: who frees into an orphan here has no memory for its set's leaf, or no LAB, and pushes remotely. set.pml
    has adoption with the set.
  - Stores of open_hot and the limit store of leave_hot go to memory at once, each as a step: their owner loads nothing
    before a locked instruction follows.
  - A block reaches another thread through memory too, so after its pop was drained: freers take only what `l_list` lacks.

Configuration: BLOCKS, THRESHOLD, FREERS, BUFFER (stores), HELPERS; CLOSE: the owner may exit; DEATH: it may die before any
of its steps; JUMPS. Twins: see meson.build. Measured: docs/models.md. */

#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef THRESHOLD
#define THRESHOLD 1
#endif
#ifndef FREERS
#define FREERS 2
#endif
#ifndef BUFFER
#define BUFFER 2
#endif
#ifndef HELPERS
#define HELPERS 0
#endif
#if defined(DEATH) && defined(CLOSE) || (defined(DEATH) || defined(CLOSE)) != (HELPERS > 0)
#error one end for the owner, and with it a helper
#endif
#define ALL ((1 << BLOCKS) - 1)
#define OWNER 0 /* the processes' numbers */
#define FREER 1
#define HELPER (FREER + FREERS)
#define PROCESSES (HELPER + HELPERS)

#define FREE 0 /* states */
#define HOT 1
#define FLOATING 2
#define REUSABLE 3
#define NEVER 15 /* bounds; others are counts of blocks */
#define ALWAYS 0
#define NEXT 0 /* ages of versions */
#define CURRENT 1
#define PREVIOUS 2
#ifdef VERSION_WRAPS /* a version of 2 bits */
#define OLD 6
#define SAME_VERSION(age) (age == CURRENT || age == CURRENT + 4)
#else
#define OLD 3
#define SAME_VERSION(age) (age == CURRENT)
#endif

byte a_state = FREE, a_list = 0;
bool a_shared = 0;
byte l_list = 0, owner_view = 0;
bool l_parity = 0;
byte limit_bound = NEVER, limit_age = OLD;
byte take_list = 0, take_age = OLD;
bool take_parity = 0;
bool owned = 0, in_slot = 0, member = 0, offered = 0, alive = 1, in_pool = 1;
chan buffer = [BUFFER] of {byte};
#define DRAINED (len(buffer) == 0)

/* What the application holds: live blocks; those in a freer's hands. */
byte live = 0, in_hand = 0;
/* The version of the anchor, of the limit, of the record that each process holds; whether nobody has changed the l_list
   word, the record, since it was loaded. At rest where a process holds none: OLD, false. */
byte seen_age[PROCESSES] = OLD, limit_copy_age[PROCESSES] = OLD, record_age[PROCESSES] = OLD;
bool local_same[PROCESSES] = 0, record_same[PROCESSES] = 0;
/* Calls under way, closing that is due included; a free span in the hands of the dead owner. */
byte busy = 0, freers_busy = 0;
bool is_dead = 0, owner_holds = 0, lost = 0;

#define COUNT(set) (((set) & 1) + (((set) >> 1) & 1) + (((set) >> 2) & 1) + (((set) >> 3) & 1))
#define LOWEST(set) ((set) & (-(set)))
#define COOLING(state) (state == FLOATING || state == REUSABLE)
#define SUM (COUNT(l_list) + COUNT(a_list))

inline quiet() { /* A4 */
    if
    :: busy == 0 && DRAINED ->
        assert(a_state != HOT || (alive && in_slot && owned));
        assert(a_state != FLOATING || SUM <= THRESHOLD || (!alive && offered));
        assert(a_state != REUSABLE || (alive && member) || (!alive && (offered || SUM <= THRESHOLD)));
        assert(a_state != FREE || in_pool || lost);
        assert(alive || a_state == FREE || SUM < BLOCKS)
    :: else
    fi
}
inline begin() { busy++ }
inline finish() { d_step { busy--; quiet() } }

byte i; /* of the steps below; 0 between them */
inline advance() { /* the anchor's version */
    for (i : 0 .. PROCESSES - 1) {
        seen_age[i] = (seen_age[i] < OLD -> seen_age[i] + 1 : OLD);
        limit_copy_age[i] = (limit_copy_age[i] < OLD -> limit_copy_age[i] + 1 : OLD);
        record_age[i] = (record_age[i] < OLD -> record_age[i] + 1 : OLD)
    }
    i = 0;
    limit_age = (limit_age < OLD -> limit_age + 1 : OLD);
    take_age = (take_age < OLD -> take_age + 1 : OLD)
}
inline set_local(value) {
    l_list = value;
    for (i : 0 .. PROCESSES - 1) { local_same[i] = 0 }
    i = 0
}
inline set_take(list, age, parity) {
    take_list = list; take_age = age; take_parity = parity;
    for (i : 0 .. PROCESSES - 1) { record_same[i] = 0 }
    i = 0
}

/* Each process's own variables; p is its number. */
#define LOCALS \
    byte state = FREE, count = 0; bool shared = 0; /* the anchor seen */ \
    byte bound = 0;                                /* the limit seen, then the one wanted */ \
    byte record = 0; bool parity = 0, matched = 0, followed = 0; /* the record seen, how the anchor follows it */ \
    byte words = 0;                                /* the l_list list seen */ \
    bool won = 0, done = 0, released = 0; byte whose = 0, sum = 0;

#define LOCKED(p) (p != OWNER || DRAINED)
#define UNCHANGED(p) (SAME_VERSION(seen_age[p]) && state == a_state && count == COUNT(a_list) && shared == a_shared)
inline load_anchor(p) { state = a_state; count = COUNT(a_list); shared = a_shared; seen_age[p] = CURRENT }
inline forget(p) { state = FREE; count = 0; shared = 0; seen_age[p] = OLD }
/* A CAS of the anchor to another state; the lists stay. On failure it is loaded. */
inline cas_state(p, next) {
    if
    :: UNCHANGED(p) -> won = 1; a_state = next; advance(); forget(p)
    :: else -> won = 0; load_anchor(p)
    fi
}
inline load_limit(p) { bound = limit_bound; limit_copy_age[p] = limit_age }
/* A CAS of the limit to (next, stay of the anchor seen). */
inline cas_limit(p, next) {
    if
    :: bound == limit_bound && limit_copy_age[p] == limit_age ->
        if
        :: won = 1; limit_bound = next; limit_age = seen_age[p]
        :: limit_age == OLD -> won = 0
        fi
    :: else -> won = 0
    fi;
    limit_copy_age[p] = OLD; bound = 0
}

/* publish(): for who made the span reusable */
inline publish(p) {
    do
    :: atomic {
           whose = owned;
           if
           :: a_state == REUSABLE
           :: else -> break
           fi
       };
       atomic {
           if
           :: alive && whose
           :: else -> break
           fi
       };
       atomic { LOCKED(p) -> member = 1 };
#ifdef NO_SECOND_LOOK /* at the owner's life, after the put */
       break;
#endif
       atomic {
           if
           :: alive && owned == whose -> break
           :: else
           fi
       };
       atomic { LOCKED(p) -> member = 0 }
    od;
    whose = 0
}

/* evaluate(), with release_span(). The owner is loaded with the anchor here: while that stands it is the same (I3). */
inline evaluate(p) {
    atomic { load_anchor(p); whose = owned };
    do
    :: atomic { !COOLING(state) -> forget(p); whose = 0; break }
    :: atomic {
           else ->
           sum = count + COUNT((p == OWNER -> owner_view : l_list));
           if
           :: sum < BLOCKS && sum <= THRESHOLD -> sum = 0; forget(p); whose = 0; break
           :: else
           fi
       };
       if
       :: sum == BLOCKS ->
          atomic {
              LOCKED(p);
              d_step {
                  sum = 0;
                  matched = (state == REUSABLE);
                  cas_state(p, FREE);
                  if
                  :: won ->
                     assert(live == 0 && in_hand == 0 && DRAINED); /* A2 */
                     assert((l_list | a_list) == ALL && (l_list & a_list) == 0 && !take_list);
                     a_list = 0; a_shared = 0; released = 1; owner_holds = (p == OWNER)
                  :: else -> matched = 0; whose = owned
                  fi
              };
              if
              :: won -> won = 0; break
              :: else
              fi
          }
       :: sum > BLOCKS ->
          d_step {
              sum = 0;
              assert(!(SAME_VERSION(seen_age[p]) && count == COUNT(a_list))); /* A3 */
              load_anchor(p); whose = owned
          }
       :: else ->
          atomic {
              sum = 0;
              if
              :: !(alive && whose) -> whose = 2
              :: else ->
                 whose = 0;
                 if
                 :: state != FLOATING -> forget(p); break
                 :: else
                 fi
              fi
          };
          if
          :: whose == 2 -> atomic { offered = 1; forget(p); whose = 0; break }
          :: else
          fi;
          atomic { LOCKED(p); d_step { cas_state(p, REUSABLE) }; whose = owned };
          if
          :: won -> won = 0; publish(p); atomic { load_anchor(p); whose = owned }
          :: else
          fi
       fi
    od;
    if
    :: released ->
       if
       :: matched && whose -> member = 0
       :: else
       fi;
       atomic { owned = 0; whose = 0; matched = 0 };
       d_step { assert(!in_pool); in_pool = 1; owner_holds = 0; released = 0 } /* A2 */
    :: else
    fi
}

/* Span::remote_push(), push_remotely(): of a block in hand */
inline push_remotely(p, block) {
    d_step { load_anchor(p); assert(state != FREE && count < BLOCKS) }; /* A3, here and below */
    do
    ::
#ifndef NO_LIMIT_STORE
       if
       :: COOLING(state) && !shared ->
          d_step { load_limit(p) };
          atomic { /* the second look at the anchor */
              if
              :: UNCHANGED(p)
              :: else -> bound = 0; limit_copy_age[p] = OLD; done = 1
              fi
          };
          if
          :: !done ->
             atomic {
#ifdef LIMIT_BY_STORE
                 limit_bound = ALWAYS; limit_age = seen_age[p]; limit_copy_age[p] = OLD; bound = 0; won = 1;
#else
                 cas_limit(p, ALWAYS);
#endif
                 done = !won; won = 0
             }
          :: else
          fi
       :: else
       fi;
#endif
       d_step {
           if
           :: !done && UNCHANGED(p) ->
              won = 1; in_hand = in_hand & ~block; a_list = a_list | block; block = 0; words = 0;
              followed = COOLING(state);
              if
              :: followed && !shared ->
                 a_shared = 1;
#ifndef NO_ANNOUNCEMENT
                 matched = (state != REUSABLE); a_state = REUSABLE; advance()
#endif
              :: else
              fi;
              forget(p)
           :: else -> done = 0; load_anchor(p); assert(state != FREE && count < BLOCKS)
           fi
       };
       if
       :: won -> won = 0; break
       :: else
       fi
    od;
    if
    :: matched -> matched = 0; publish(p)
    :: else
    fi;
    if
    :: followed ->
       followed = 0;
#ifndef REMOTE_DOES_NOT_EVALUATE
       evaluate(p)
#endif
    :: else
    fi
}

/* Span::finish_take(): done is what it returns */
inline finish_take(p) {
    do
    :: d_step {
           record = take_list; record_age[p] = take_age; parity = take_parity; record_same[p] = 1;
           done = (take_list == 0)
       };
       if
       :: done || !owned -> done = 1; break
       :: else
       fi;
       d_step { words = (p == OWNER -> owner_view : l_list); local_same[p] = 1; parity = (parity == l_parity) };
       d_step {
           load_anchor(p);
           matched = (parity && state == HOT && record_age[p] == CURRENT && record == a_list);
           followed = (parity && state == HOT && record_age[p] == PREVIOUS); parity = 0; record_age[p] = OLD
       };
       if
       :: !record_same[p] -> goto_again(p)
       :: else ->
          if
          :: matched ->
             atomic {
                 LOCKED(p);
                 d_step {
                     if
                     :: UNCHANGED(p) ->
                        a_list = 0; advance(); followed = 1; forget(p)
                     :: else -> followed = 0; done = 1
                     fi;
                     matched = 0
                 }
             }
          :: else
          fi;
          if
          :: done -> done = 0; goto_again(p) /* the CAS failed: again */
          :: else ->
             if
             :: followed && words != 0 -> done = 0; break
             :: followed && words == 0 ->
                atomic {
                    LOCKED(p);
                    d_step {
                        if
                        :: local_same[p] ->
                           assert((record & (live | in_hand | a_list)) == 0); /* A1 */
                           set_local(record); owner_view = record; l_parity = !l_parity
                        :: else -> done = 1
                        fi
                    }
                }
             :: else
             fi;
             if
             :: done -> done = 0
             :: else ->
                atomic {
                    LOCKED(p);
                    d_step {
                        if
                        :: record_same[p] -> set_take(0, OLD, 0)
                        :: else
                        fi
                    }
                }
             fi;
             goto_again(p)
          fi
       fi
    od;
    atomic {
        forget(p); record = 0; record_age[p] = OLD; record_same[p] = 0; local_same[p] = 0; parity = 0; matched = 0;
        followed = 0; words = 0
    }
}
inline goto_again(p) {
    atomic { forget(p); record = 0; record_age[p] = OLD; record_same[p] = 0; local_same[p] = 0; matched = 0; followed = 0; words = 0 }
}

/* Span::pop_for_install(), and the block's remote push */
inline pop_for_install(p) {
    d_step { words = (p == OWNER -> owner_view : l_list); local_same[p] = 1; parity = l_parity };
    d_step { record = take_list; record_age[p] = take_age; matched = (take_list != 0 && parity == take_parity); parity = 0 };
    d_step { followed = (matched && a_state == HOT && record_age[p] == PREVIOUS); record_age[p] = OLD; record = 0; matched = 0 };
    if
    :: followed && owned && words != 0 ->
       atomic {
           LOCKED(p);
           d_step {
               if
               :: local_same[p] ->
                  words = LOWEST(words); set_local(l_list & ~words); owner_view = l_list; in_hand = in_hand | words
               :: else -> words = 0
               fi;
               local_same[p] = 0; followed = 0
           }
       };
       if
       :: words -> push_remotely(p, words)
       :: else
       fi
    :: else -> d_step { words = 0; local_same[p] = 0; followed = 0 }
    fi
}

/* Span::refresh_limit() of the owner */
inline refresh_limit(p) {
    do
    :: d_step { load_limit(p) };
       d_step {
           load_anchor(p);
           done = (state == FREE);
           if
           :: COOLING(state) && (shared || (bound == ALWAYS && limit_copy_age[p] == CURRENT)) -> done = 1
           :: else
           fi;
           sum = NEVER;
           if
           :: COOLING(state) ->
              sum = (state == FLOATING -> THRESHOLD + 1 : BLOCKS);
              sum = (sum > count -> sum - count : 1)
           :: else
           fi;
           if
           :: bound == sum && limit_copy_age[p] == CURRENT -> done = 1
           :: else
           fi
       };
       if
       :: done || !owned -> break
       :: else
       fi;
       atomic { DRAINED; cas_limit(p, sum); won = 0; forget(p) }
    od;
    atomic { forget(p); bound = 0; limit_copy_age[p] = OLD; sum = 0; done = 0 }
}

/* Span::leave_hot(), leave() */
inline leave(p) {
#ifdef JUMPS
    do
    :: finish_take(p);
       if
       :: done -> done = 0; break
       :: else -> pop_for_install(p)
       fi
    od;
#else
    assert(!take_list); /* no call of the owner's was cut off */
#endif
    atomic { DRAINED; d_step { for (i : 0 .. PROCESSES - 1) { local_same[i] = 0 } i = 0 } };
    d_step { load_anchor(p) };
    assert(state == HOT);
    do
    :: d_step { limit_bound = (THRESHOLD + 1 > count -> THRESHOLD + 1 - count : 1); limit_age = NEXT };
       d_step {
           if
           :: UNCHANGED(p) ->
              won = 1; a_state = FLOATING;
#ifndef MARK_STAYS
              a_shared = 0;
#endif
              advance()
           :: else -> won = 0; load_anchor(p)
           fi
       };
       if
       :: won -> won = 0; break
       :: else
       fi
    od;
    atomic { forget(p) };
    refresh_limit(p);
    evaluate(p)
}

/* claim(): done if the span is hot and the caller's */
inline claim(p, wanted_hot) {
    d_step { load_anchor(p) };
    do
    :: if
       :: state != REUSABLE || !owned -> matched = 1; break
       :: else
       fi;
       followed = (wanted_hot && count + COUNT((p == OWNER -> owner_view : l_list)) > THRESHOLD);
       atomic {
           LOCKED(p);
           if
#ifndef CLAIM_BY_STORE
           :: followed -> cas_state(p, HOT)
#else
           :: followed -> won = 1; a_state = HOT; advance(); forget(p)
#endif
           :: else -> cas_state(p, FLOATING)
           fi
       };
       if
       :: won && followed -> won = 0; followed = 0; done = 1; break
       :: won && !followed ->
          won = 0;
#ifndef NO_EVALUATE_AFTER_CLAIM
          matched = 1;
#endif
          break
       :: else -> followed = 0
       fi
    od;
    atomic { forget(p); followed = 0 };
    if
    :: matched -> matched = 0; evaluate(p)
    :: else
    fi
}

/* Span::retire() of a life that is over */
inline retire(p) {
    do
    :: d_step { load_anchor(p) };
       if
       :: state != HOT || !owned -> break
       :: else
       fi;
       /* The anchor seen is needed behind finish_take: its age is kept in limit_copy_age, which is free here. */
       d_step { limit_copy_age[p] = seen_age[p]; sum = count; bound = shared };
       finish_take(p);
       if
       :: !done ->
          d_step { limit_copy_age[p] = OLD; sum = 0; bound = 0 };
#ifdef JUMPS
          pop_for_install(p)
#else
          assert(false)
#endif
       :: else ->
          d_step {
              done = 0; state = HOT; count = sum; shared = bound; seen_age[p] = limit_copy_age[p];
              limit_copy_age[p] = OLD; sum = 0; bound = 0;
              if
              :: UNCHANGED(p) -> won = 1; a_state = FLOATING; a_shared = 0; advance()
              :: else
              fi;
              forget(p)
          };
          if
          :: won -> won = 0; break
          :: else
          fi
       fi
    od;
    atomic { forget(p) };
    evaluate(p)
}

/* help_close(), from where the LAB is closing */
inline help_close(p) {
    if
    :: in_slot -> retire(p)
    :: else
    fi;
    do
    :: member ->
       claim(p, false);
       member = 0;
       if
       :: a_state == REUSABLE -> publish(p)
       :: else
       fi
    :: else -> break
    od
}

byte owner_word = 0;
active proctype StoreBuffer() {
end:
    do
    :: d_step { buffer?owner_word; set_local(owner_word); owner_word = 0; quiet() }
    od
}

/* Where a jump leaves a refill for good. */
inline may_jump() {
#ifdef JUMPS
    if
    :: jumped = 1
    :: true
    fi
#else
    skip
#endif
}

proctype Owner() {
    LOCALS
    byte block = 0;
    bool jumped = 0;
    {
end:
    do
    /* rseq_pop */
    :: atomic {
           in_slot && owner_view && len(buffer) < BUFFER ->
           block = LOWEST(owner_view);
           assert((block & (live | in_hand | a_list)) == 0); /* A1 */
           owner_view = owner_view & ~block; buffer!owner_view; live = live | block; block = 0
       }
    /* allocate_slow: the hot span's list is empty, or another span is hot */
    :: atomic { !in_slot || !owner_view -> begin() };
       if
       :: in_slot ->
          jumped = 0;
#ifdef JUMPS
          finish_take(OWNER);
          done = 0;
#endif
          if
          :: owner_view -> skip
          :: else ->
             if
             :: COUNT(a_list) > THRESHOLD -> sum = 1
             :: else -> if :: sum = 1 :: sum = 0 fi /* no other span: then whatever it has */
             fi;
             if
             :: sum -> /* Span::refill */
                sum = 0;
                words = 0;
                d_step { load_anchor(OWNER); record = a_list; done = (a_list == 0 || take_list != 0) };
                if
                :: done
                :: else ->
                   may_jump();
                   if
                   :: jumped
                   :: else ->
                      atomic { DRAINED; d_step { if :: !take_list -> set_take(record, seen_age[OWNER], l_parity) :: else fi } }
                   fi
                fi;
                d_step { forget(OWNER); record = 0; done = 0 };
                may_jump();
                if
                :: jumped
                :: else -> finish_take(OWNER)
                fi;
                done = 0
             :: else -> sum = 0; goto acquire
             fi
          fi
       :: else ->
acquire:  /* acquire_span: out of the set, else out of the pool; in_slot says whether this span is the one to leave */
          done = 0;
          if
          :: atomic { member && DRAINED -> member = 0 };
             claim(OWNER, true);
             if
             :: done -> done = 0; refresh_limit(OWNER); done = 1
             :: else
             fi
          :: else
          fi;
          if
          :: done
          :: !done ->
             if
             :: atomic { in_pool && DRAINED -> in_pool = 0; owner_holds = 1 };
                /* Span::open_hot */
                d_step { limit_bound = NEVER; limit_age = NEXT };
                d_step { set_take(0, OLD, 0) };
                d_step { set_local(ALL); owner_view = ALL; l_parity = !l_parity };
                owned = 1;
                d_step { a_state = HOT; a_shared = 0; a_list = 0; advance(); owner_holds = 0 };
                done = 1
             :: true
             fi
          fi;
          if
          :: done -> /* it goes into the slot, unless a handler was faster: then it leaves */
             done = 0;
             if
             :: atomic { DRAINED -> in_slot = 1 }
             :: sum = 1
             fi
          :: else ->
             if
             :: in_slot -> atomic { DRAINED -> in_slot = 0 }; sum = 1
             :: else
             fi
          fi;
          if
          :: sum -> sum = 0; leave(OWNER)
          :: else
          fi
       fi;
       finish()
    /* deallocate: rseq_push, then the limit */
    :: atomic {
           live && len(buffer) < BUFFER -> begin();
           if
           :: block = LOWEST(live)
           :: block = live & ~LOWEST(live); if :: block -> block = LOWEST(block) :: else -> block = LOWEST(live) fi
           fi;
           live = live & ~block; owner_view = owner_view | block; buffer!owner_view; block = 0
       };
       d_step { done = (limit_bound != NEVER && COUNT(owner_view) >= limit_bound) };
       if
       :: done ->
          done = 0;
#ifndef NO_FENCE
          DRAINED;
#endif
          evaluate(OWNER);
          refresh_limit(OWNER)
       :: else
       fi;
       finish()
#ifdef CLOSE
    /* close_lab, step 1. The first helper stands for the owner's own help_close. */
    :: atomic { DRAINED -> alive = 0; busy = busy + HELPERS };
       break
#endif
    od
    } unless {
        atomic {
            is_dead && DRAINED ->
            d_step {
                lost = owner_holds;
                /* What a dead thread's copies say matters to nobody. */
                seen_age[OWNER] = OLD; limit_copy_age[OWNER] = OLD; record_age[OWNER] = OLD; local_same[OWNER] = 0;
                record_same[OWNER] = 0; alive = 0; owner_view = 0;
                busy = HELPERS + freers_busy;
            }
        }
    }
}

proctype Freer(byte p) {
    LOCALS
    byte block = 0;
end:
    do
    :: atomic {
           live & ~l_list ->
           begin(); freers_busy++;
           block = LOWEST(live & ~l_list); live = live & ~block; in_hand = in_hand | block
       };
#if HELPERS > 0
       if
       :: owned && !alive && a_state == HOT -> retire(p)
       :: true
       fi;
#endif
       push_remotely(p, block);
       d_step { freers_busy--; busy--; quiet() }
    od
}

/* Who finds the LAB closing or its owner dead: help_close. After a death, or an exit out of a call that was cut off, also
   inspect, of the round of repair that follows. */
proctype Helper(byte p) {
    LOCALS
end:
    !alive;
    help_close(p);
#if defined(DEATH) || defined(JUMPS)
    if
    :: a_state == HOT -> if :: owned -> retire(p) :: else fi
    :: a_state == FLOATING || a_state == REUSABLE -> evaluate(p)
    :: else
    fi;
#endif
    finish()
}

#ifdef DEATH
active proctype Death() { if :: atomic { alive -> is_dead = 1 } :: true fi }
#endif

init {
    atomic {
        run Owner();
        for (i : FREER .. HELPER - 1) { run Freer(i) }
        for (i : HELPER .. PROCESSES - 1) { run Helper(i) }
        i = 0
    }
}
