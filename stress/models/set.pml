/* Lives of a LAB, and who finds its reusable span: publish, take_reusable, claim, drain_one_reusable, adopt, adopt_one,
evaluate, leave (lib/lab/transitions.cc, allocate.cc); close_lab, help_close, examine, inspect (closing.cc, repair.cc);
Registry::is_active, acquire_lab, try_release (registry.h, registry.cc).

Words: phase, life: the LAB's state word, its generation the life; owner: the span's owner word; state: the anchor's
state, its version by age as in span.pml; ready: more than T blocks are free (the sum of two words in the code; once
true it stays so until the span is hot again, I1 of span.h); member: the span is in the LAB's reusable set; offered: in
the_orphans. There is one LAB: so every later life is of the same LAB, with the same set, which is the hard case.

Processes: threads, each of which activates the LAB when it is free, works with it (takes the span out of the set,
adopts it, leaves it), and exits or dies before any step; while it has none it helps to close. A freer, whose remote
frees make the span ready, announced or not. With the death of a thread goes one round of repair (examine, inspect) by
another, as Repair::request has it; it begins after the death.

Checked; S2 fails for the code as built, see docs/models.md. EVALUATED_AFTER_PUBLISH is a remedy, not run to its end.
  S1 at most one holds the span hot
  S2 whenever nobody is in a call, and no repair is due: a reusable span of an active life is in the set; a span that is
     ready, of a life that is over, is on offer; a hot one is held by who has the LAB, alive. So it is found, by the
     next malloc of its owner, or of anyone.
  S3 a closed LAB (free) leaves no span reusable or hot that is its last life's, unless on offer or not ready

Left out, and why that is sound: the summaries, which index_set.pml has: here put, remove and take are one step, as
members are exact there (I1). Blocks, limit, free: span.pml. The freer does not die: what it leaves undone then is what
a thread that dies in evaluate does. Two spans: members are independent bits, with no word in common but summaries.
ensure fails: then adopt does nothing.

Configuration: THREADS, LIVES (how many the LAB has at most), DEATHS (how many threads may die; not run yet). Measured:
docs/models.md. */

#ifndef THREADS
#define THREADS 2
#endif
#ifndef LIVES
#define LIVES 3
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#define FREER THREADS
#define PROCESSES (THREADS + 1)

#define HOT 1
#define FLOATING 2
#define REUSABLE 3
#define IDLE 0 /* phases */
#define ACTIVE 1
#define CLOSING 2
#define CURRENT 0 /* ages */
#define OLD 1
#define NOBODY PROCESSES

byte phase = ACTIVE, life = 1, owner = 1, state = HOT;
bool ready = 0, member = 0, offered = 0;
byte seen_age[PROCESSES] = OLD;
byte holder = 0;      /* of the hot span */
byte has_lab = 0;     /* the thread whose LAB it is */
byte busy = 0, deaths = 0, killed = 0, repairs = 0; /* busy: the processes in a call */
bool dead_owner = 0;  /* the LAB's thread has died */

#define IS_ACTIVE(who) (phase == ACTIVE && life == who)
inline quiet() {
    if
    :: busy == 0 && repairs == 0 && !dead_owner && phase != CLOSING ->
       assert(state != HOT || (phase == ACTIVE && owner == life && holder == has_lab));
       assert(state != REUSABLE || (IS_ACTIVE(owner) && member) || (!IS_ACTIVE(owner) && (offered || !ready)));
       assert(state != FLOATING || !ready || (!IS_ACTIVE(owner) && offered))
    :: else
    fi
}
inline begin(p) { busy = busy | (1 << p) }
inline finish(p) { d_step { busy = busy & ~(1 << p); quiet() } }

byte i;
inline change(next) {
    state = next;
    for (i : 0 .. PROCESSES - 1) { seen_age[i] = OLD }
    i = 0
}
inline load(p) { seen = state; seen_age[p] = CURRENT }
inline forget(p) { seen = 0; seen_age[p] = OLD }
inline cas(p, next) { /* a pushed block changes the anchor too, but not what matters here */
    if
    :: seen_age[p] == CURRENT -> won = 1; change(next); seen = 0
    :: else -> won = 0; load(p)
    fi
}

inline publish(p) {
    do
    :: whose = owner;
       atomic { if :: state != REUSABLE -> break :: else fi };
       atomic { if :: !IS_ACTIVE(whose) -> break :: else fi };
       member = 1;
#ifdef NO_SECOND_LOOK
       break;
#endif
       atomic { if :: !IS_ACTIVE(whose) -> same = 0 :: else -> same = 1 fi };
       atomic { if :: same && owner == whose -> break :: else same = 0 fi };
       member = 0
    od;
    atomic { whose = 0; same = 0 }
}

inline evaluate(p) {
    d_step { load(p) };
    do
    :: seen == HOT -> break
    :: else ->
       whose = owner;
       atomic { if :: !ready -> break :: else fi };
       if
       :: !IS_ACTIVE(whose) -> offered = 1; break
       :: else
       fi;
       whose = 0;
       if
       :: seen == REUSABLE -> break
       :: else
       fi;
       d_step { cas(p, REUSABLE) };
       if
       :: won -> won = 0; publish(p); d_step { load(p) }
       :: else
       fi
    od;
    atomic { forget(p); whose = 0 }
}

/* who: the life for which; done: it is hot and the caller's */
inline claim(p, who, wanted_hot) {
    d_step { load(p) };
    do
    :: if
#ifndef NO_VALIDATION
       :: seen != REUSABLE || owner != who -> same = 1; break
#else
       :: seen != REUSABLE -> same = 1; break
#endif
       :: else
       fi;
       if
       :: wanted_hot && ready ->
          d_step { cas(p, HOT); if :: won -> assert(holder == NOBODY); holder = p :: else fi }; /* S1 */
          if
          :: won -> won = 0; done = 1; break
          :: else
          fi
       :: else ->
          d_step { cas(p, FLOATING) };
          if
          :: won -> won = 0; same = 1; break
          :: else
          fi
       fi
    od;
    atomic { forget(p) };
    if
    :: same -> same = 0; evaluate(p)
    :: else
    fi
}

inline retire(p, gone) {
    do
    :: d_step { load(p) };
       if
       :: seen != HOT || owner != gone -> break
       :: else
       fi;
       d_step { cas(p, FLOATING); if :: won -> holder = NOBODY :: else fi };
       if
       :: won -> won = 0; break
       :: else
       fi
    od;
    evaluate(p)
}

/* Step 2 looks at slots: the span is in the slot while it is held. gone: the life that is closed. */
inline help_close(p) {
    if
    :: holder != NOBODY -> retire(p, gone)
    :: else
    fi;
    do
    :: atomic { if :: !(phase == CLOSING && life == gone) -> break :: else fi };
       atomic { if :: !member -> break :: else fi };
       claim(p, gone, false);
       member = 0;
#ifndef NO_PUBLISH_AFTER_DRAIN
       if
       :: state == REUSABLE ->
          publish(p);
#ifdef EVALUATED_AFTER_PUBLISH
          evaluate(p)
#endif
       :: else
       fi
#endif
    od;
    atomic { /* try_release */
        if
        :: phase == CLOSING && life == gone -> phase = IDLE
        :: else
        fi;
        gone = 0
    }
}

inline inspect(p) {
    whose = owner;
    if
    :: state == HOT ->
       if
       :: !IS_ACTIVE(whose) -> atomic { gone = whose; whose = 0 }; retire(p, gone)
       :: else
       fi
    :: else ->
       whose = 0;
       evaluate(p);
       if
       :: state == REUSABLE ->
          publish(p);
#ifdef EVALUATED_AFTER_PUBLISH
          evaluate(p)
#endif
       :: else
       fi
    fi;
    d_step { whose = 0; gone = 0 }
}

proctype Thread(byte p) {
    byte seen = 0, whose = 0, gone = 0, mine = 0;
    bool won = 0, same = 0, done = 0;
    mine = (p == 0 -> 1 : 0);
    {
end:
    do
    /* acquire_lab */
    :: d_step { !mine && phase == IDLE && life < LIVES -> phase = ACTIVE; life++; mine = life; has_lab = p; dead_owner = 0 }
    /* allocate_slow: out of the set; the hot one, if it is this, leaves */
    :: atomic { mine && member && holder != p -> begin(p); member = 0 };
       claim(p, mine, true);
       done = 0;
       finish(p)
    :: atomic { mine && holder == p -> begin(p); ready = 0 }; /* its blocks are handed out */
       d_step { holder = NOBODY; load(p) };
       d_step { cas(p, FLOATING); won = 0; forget(p) };
       evaluate(p);
       finish(p)
    /* adopt_one, or a free into an orphan */
    :: atomic { mine && state != HOT && owner != mine -> begin(p); if :: offered -> offered = 0 :: true fi };
       gone = owner;
       if
       :: !IS_ACTIVE(gone) && gone != mine ->
          d_step { seen = state };
          if
          :: seen != HOT ->
#ifdef ADOPT_BY_STORE
             owner = mine; done = 1;
#else
             d_step { if :: owner == gone -> owner = mine; done = 1 :: else fi };
#endif
             seen = 0;
             if
#ifndef NO_PUBLISH_BY_HEIR
             :: done -> done = 0; publish(p)
#endif
             :: else -> done = 0
             fi
          :: else -> seen = 0
          fi
       :: else
       fi;
       gone = 0;
       evaluate(p);
       finish(p)
    /* exit */
    :: atomic { mine -> begin(p); gone = mine; mine = 0; phase = CLOSING; has_lab = NOBODY };
       help_close(p);
       finish(p)
    /* who needs a LAB, or finds that one is closing or its owner is dead */
    :: atomic { !mine && phase == CLOSING -> begin(p); gone = life };
       help_close(p);
       finish(p)
    :: atomic { !mine && phase == ACTIVE && dead_owner -> begin(p); gone = life; phase = CLOSING; has_lab = NOBODY };
       help_close(p);
       finish(p)
    /* repair: after the LABs the spans */
    :: atomic { repairs && !dead_owner && phase != CLOSING -> begin(p); repairs-- };
       inspect(p);
       finish(p)
    od
    } unless { d_step {
        killed == p + 1 ->
        killed = 0;
        seen_age[p] = OLD;
        dead_owner = (phase == ACTIVE && has_lab == p);
        repairs = repairs + 1;
        busy = busy & ~(1 << p);
        quiet()
    } }
}

/* push_remotely: a free that makes the span reusable, by its announcement or since it makes it ready. */
proctype Freer(byte p) {
    byte seen = 0, whose = 0;
    bool won = 0, same = 0;
end:
    do
    :: atomic { state != HOT && !ready -> begin(p); ready = 1 };
       evaluate(p);
       finish(p)
    :: d_step { state == FLOATING -> begin(p); change(REUSABLE) };
       publish(p);
       evaluate(p);
       finish(p)
    od
}

#if DEATHS > 0
active proctype Death() {
    byte p = 0;
end:
    do
    :: d_step { deaths < DEATHS && !killed -> deaths++; killed = p + 1; p = 0 }
    :: atomic { p < THREADS - 1 -> p++ }
    od
}
#endif

init {
    atomic {
        for (i : 0 .. THREADS - 1) { run Thread(i) }
        run Freer(FREER);
        i = 0
    }
}
