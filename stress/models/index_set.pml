/* The set of small numbers with its summaries (hints): lib/sync/index_set.h, IndexSet::put, remove, find, take,
clear_hint, set_hint, show, hide, find_word. Each step is one access to one word; all of them are seq_cst there.

Words: members[w], the words of a leaf: two members in the first, one in the second; leaf, the leaf's summary, a bit per
word; branch, root: the summaries above, of which one bit each matters here.

Checked: H1 whenever nobody is in a call, the summaries above each member are set, so find finds it. Nobody who puts or
clears a hint need be finished by others, so this is all that the set promises (index_set.h, I2).

Left out: other leaves and branches: their words are other words, and a summary bit of theirs set beside ours only keeps
the word above from being zero, as the second word's does here. Nodes that are not there yet (ensure comes before put).
The bounds of the loops (kMaxRepairs): to say "none" early is always right. A death between the two steps of a put or a
clear: the next put of the same member sets all summaries (set.pml, DEATH, counts on that).

Configuration: PROCESSES. Twins: see meson.build. Measured: docs/models.md. */

#ifndef PROCESSES
#define PROCESSES 3
#endif

byte members[2] = 0, leaf = 0, branch = 0, root = 0, busy = 0;

inline quiet() {
    d_step {
        busy--;
        if
        :: busy == 0 && (members[0] || members[1]) ->
           assert(root && branch && (!members[0] || (leaf & 1)) && (!members[1] || (leaf & 2))) /* H1 */
        :: else
        fi
    }
}

inline set_hint(summary, hint) {
    if
    :: (summary & hint) == 0 -> summary = summary | hint
    :: else
    fi
}
inline show_hints(w) {
#ifdef TOP_DOWN
    set_hint(root, 1); set_hint(branch, 1); set_hint(leaf, (1 << w))
#else
    set_hint(leaf, (1 << w)); set_hint(branch, 1); set_hint(root, 1)
#endif
}
/* exact: the hint stayed clear, or below was not zero */
inline clear_hint(summary, hint, below) {
    if
    :: below != 0 -> exact = 1
    :: else ->
       summary = summary & ~(hint);
#ifdef NO_SECOND_LOOK
       exact = 1
#else
       exact = (below == 0)
#endif
    fi
}
inline hide(w) {
    clear_hint(leaf, (1 << w), members[w]);
    if
    :: exact -> clear_hint(branch, 1, leaf)
    :: else
    fi;
    if
    :: exact -> clear_hint(root, 1, branch)
    :: else
    fi;
    if
#ifndef NO_SHOW_AFTER_HIDE
    :: !exact -> exact = 0; show_hints(w)
#endif
    :: else -> exact = 0
    fi
}
/* before: what the word was */
inline remove(w, member) {
    d_step { before = members[w]; members[w] = before & ~(member) };
    if
    :: before == member -> hide(w)
    :: else
    fi
}

proctype Caller() {
    byte w = 0, found = 0, before = 0, seen = 0;
    bool exact = 0, none = 0;
end:
    do
    :: atomic { busy++; if :: w = 0; found = 1 :: w = 0; found = 2 :: w = 1; found = 1 fi };
       /* put */
       d_step { before = members[w]; members[w] = before | found };
#ifdef NO_SHOW_OF_OTHERS /* only who finds the word empty sets its hints */
       if
       :: before == 0 -> show_hints(w)
       :: else
       fi;
#else
       show_hints(w);
#endif
       d_step { w = 0; found = 0; before = 0 };
       quiet()
    :: atomic { busy++; if :: w = 0; found = 1 :: w = 0; found = 2 :: w = 1; found = 1 fi };
       remove(w, found);
       d_step { w = 0; found = 0; before = 0 };
       quiet()
    :: atomic { busy++; none = 0 };
       /* take */
       do
       :: atomic { if :: root == 0 -> break :: else fi };
          if
          :: branch == 0 ->
             clear_hint(root, 1, branch);
             if
             :: !exact -> set_hint(root, 1)
             :: else -> exact = 0
             fi
          :: else ->
             seen = leaf;
             if
             :: seen == 0 ->
                clear_hint(branch, 1, leaf);
                if
                :: !exact -> set_hint(branch, 1); set_hint(root, 1)
                :: else -> exact = 0
                fi
             :: else ->
                atomic { w = ((seen & 1) -> 0 : 1); seen = 0 };
                d_step { found = members[w]; found = found & (-found) };
                if
                :: found == 0 -> hide(w)
                :: else ->
                   remove(w, found);
                   if
                   :: before & found -> break
                   :: else
                   fi
                fi;
                d_step { w = 0; found = 0; before = 0 }
             fi
          fi
       od;
       atomic { w = 0; found = 0; before = 0 };
       quiet()
    od
}

init {
    byte i;
    atomic { for (i : 1 .. PROCESSES) { run Caller() } }
}
