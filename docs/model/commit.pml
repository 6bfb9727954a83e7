/* Plan, manifest, commit, fence and the epochs row: a model for Spin. README.md beside this file says what it shows.
 *
 * A comment that begins with "code:" names a file below src/catchment and what of it stands here.
 * tests/tidy/test_model.py checks that all of them exist.
 *
 * A step is one read or one write that nothing can part. Between two steps a run may crash, others may take any number
 * of steps while it is frozen, and the state store may be lost. Planted mistakes are macros.
 */

/* Bounds: the highest epoch number that a run may plan, the starts of each runner, the replacements of the store. */
#ifndef EPOCHS
#define EPOCHS 3
#endif
#ifndef STARTS
#define STARTS 2
#endif
#ifndef REPLACEMENTS
#define REPLACEMENTS 0
#endif
#ifndef RUNNERS
#define RUNNERS 2
#endif

#define TABLES 2
#define SLOTS (EPOCHS + 1) /* Epoch numbers begin with 1. */

/* A manifest is its reader and the epoch before it. Its own epoch is the index under which it is kept. A reader is a
 * start of a runner: no start reads one epoch twice, so two attempts never look alike. */
#define MANIFEST(reader, previous) ((reader) * 8 + (previous))
#define READER(manifest) ((manifest) / 8)
#define PREVIOUS(manifest) ((manifest) % 8)

/* What a table holds: the reader of each epoch in it, three bits an epoch. */
#define WITH(content, epoch, reader) ((content) | ((reader) << (3 * (epoch))))
#define PART(content, epoch) (((content) >> (3 * (epoch))) & 7)

/* The first epoch creates all tables; after it, every third one leaves the second table untouched. */
#define TOUCHES(table, epoch, previous) ((table) == 0 || (previous) == 0 || (epoch) % 3 != 0)

/* A feed's first epoch has no rows: it makes the tables, which look the same whoever does it. */
#define EMPTY 1
#define ROWS(manifest) (PREVIOUS(manifest) == 0 -> 0 : READER(manifest)) /* code: source/first_cut.py originate */

#define AT(table, epoch) ((table) * SLOTS + (epoch))

/* The state store. The newest plan and the newest commit are enough; manifests are asked for by epoch, too. */
byte store_fence; /* code: state/database.py lease_table */
byte store_plan; /* code: model/epoch.py Plan */
byte store_manifest[SLOTS]; /* code: model/epoch.py Manifest */
byte store_committed; /* code: model/epoch.py Commit */
byte store_digest; /* code: model/records.py digest */

/* A copy of the store's file, taken between two of its transactions. */
bit copied;
byte copy_fence;
byte copy_plan;
byte copy_manifest[SLOTS];
byte copy_committed;
byte copy_digest;
byte copy_holder;

/* The lake: two tables with their app transactions, and what each held right after the commit of an epoch. */
int table_content[TABLES];
byte table_epoch[TABLES]; /* code: sink/delta/layout.py epoch_app */
byte table_fence[TABLES]; /* code: sink/delta/layout.py fence_app */
int table_version[TABLES * SLOTS]; /* code: sink/delta/tail/apply.py EPOCH_NOTE */

/* The epochs table: one row for each epoch, with the version of each table, that is, what the table held. */
byte row_manifest[SLOTS]; /* code: model/epoch.py EpochRow */
int row_version[TABLES * SLOTS];
byte epochs_fence; /* code: sink/delta/epochs/table.py EpochsTable.fence */

/* What only the properties look at. `holds` counts who has had the lease, so that the later of two is known. */
byte holds;
byte store_holder;
byte table_holder[TABLES];
byte epochs_holder;
byte ever_readable[SLOTS];

/* The world: how many run, the highest number used, how often the store may still be replaced, whether it was. */
byte alive;
byte clock;
byte replacements = REPLACEMENTS;
bit replaced;

/* The properties. Each is true until it is found broken. */
bit reader_sees_its_epochs_and_no_other = 1;
bit readable_once_readable_always = 1;
bit no_write_under_a_stale_fence = 1;
bit left_alone_a_run_commits = 1;
bit chain_has_no_gap = 1;

#define must(property, condition) property = property && (condition); assert(property)

/* Scratch within a step; no part of a state. */
hidden byte newest;
hidden byte at;
hidden byte i;
hidden int expected;
hidden byte refused;

inline newest_manifest() { /* code: state/store.py Store.newest */
    newest = EPOCHS;
    do
    :: newest > 0 && store_manifest[newest] == 0 -> newest--
    :: else -> break
    od
}

inline newest_row() { /* code: sink/delta/epochs/table.py EpochsTable.newest */
    newest = EPOCHS;
    do
    :: newest > 0 && row_manifest[newest] == 0 -> newest--
    :: else -> break
    od
}

/* What table `table` must hold at a row: the epochs of the row's chain that touch it. */
inline expect(table, row) {
    expected = (row == 0 -> 0 : EMPTY);
    at = row;
    do
    :: at == 0 -> break
    :: else ->
        if
        :: TOUCHES(table, at, PREVIOUS(row_manifest[at])) ->
            expected = WITH(expected, at, ROWS(row_manifest[at]))
        :: else
        fi;
        at = PREVIOUS(row_manifest[at])
    od
}

/* code: state/store.py Store.guard */
#ifdef STORE_WITHOUT_GUARD
#define GUARDED true
#else
#define GUARDED (store_fence == fence)
#endif

/* code: sink/delta/log/fence.py must_lead */
#ifdef TABLE_WITHOUT_FENCE
#define FENCED_TABLE(table) false
#else
#define FENCED_TABLE(table) (table_fence[table] > fence)
#endif
#ifdef EPOCHS_TABLE_WITHOUT_FENCE
#define FENCED_EPOCHS false
#else
#define FENCED_EPOCHS (epochs_fence > fence)
#endif

/* Who wrote: ordered by fence, and of two with one fence the later is higher. */
#define RANK (fence * 8 + me)

/* Of two runners with one fence, only the one goes on that took over the epochs table first. */
#ifndef SAME_FENCE
#define HOLDS_STORE (store_holder <= me || epochs_holder == RANK)
#else
#define HOLDS_STORE (store_holder <= me)
#endif
inline wrote_store() {
    must(no_write_under_a_stale_fence, HOLDS_STORE)
}

inline wrote_table(table) {
    must(no_write_under_a_stale_fence, table_holder[table] <= RANK);
    table_holder[table] = RANK;
    table_fence[table] = fence
}

inline wrote_epochs() {
    must(no_write_under_a_stale_fence, epochs_holder <= RANK);
    epochs_holder = RANK;
    epochs_fence = fence
}

/* A run may end between any two steps. When nothing can follow, one that never goes on is the same. */
inline may_crash() {
    if
    :: starts > 0 || replacements > 0 -> goto dead
    :: true
    fi
}

/* A run whose store was replaced under it is not left alone either. */
#ifdef REPLACED_UNDER_A_RUNNER
#define OVERTAKEN (holds > me || replaced)
#else
#define OVERTAKEN (holds > me)
#endif

/* The run ends because a later runner has the feed: then there must be one. */
inline lease_lost() { /* code: model/errors.py LeaseLost */
    d_step { must(left_alone_a_run_commits, OVERTAKEN) };
    goto dead
}

/* The run ends and asks for a human. The newest run may do so in one case only: the store was lost in the feed's first
 * epoch, so that tables hold what neither store nor epochs table knows. */
inline refuse() { /* code: model/errors.py SinkRestored StateError SinkError */
    d_step {
        newest_row();
        must(left_alone_a_run_commits, OVERTAKEN || (replaced && newest == 0 && (table_epoch[0] || table_epoch[1])))
    };
    goto dead
}

/* Readers come at any moment and hold no lock. What they see changes only with a write to the lake, so they look after
 * each. They read the tables as the newest row names them, and see whether an earlier row has changed. */
inline reader_looks() { /* code: api/read.py read */
    newest_row();
    expect(0, newest);
    must(reader_sees_its_epochs_and_no_other, row_version[AT(0, newest)] == expected);
    expect(1, newest);
    must(reader_sees_its_epochs_and_no_other, row_version[AT(1, newest)] == expected);
    for (i : 1 .. EPOCHS) {
        must(readable_once_readable_always, READER(row_manifest[i]) == ever_readable[i])
    };
    i = 0
}

/* A table's part of an epoch, exactly once. Of a table that the epoch does not touch, the newest version counts. */
inline apply(table) { /* code: sink/delta/tail/apply.py DeltaSink.apply */
    if
    :: !TOUCHES(table, epoch, PREVIOUS(manifest)) -> /* code: sink/delta/tail/apply.py DeltaSink._look_up */
        version[table] = table_content[table]
    :: TOUCHES(table, epoch, PREVIOUS(manifest)) && FENCED_TABLE(table) -> lease_lost()
#ifndef TABLE_WITHOUT_TRANSACTION
    :: TOUCHES(table, epoch, PREVIOUS(manifest)) && !FENCED_TABLE(table) && table_epoch[table] >= epoch ->
        if /* code: sink/delta/tail/apply.py version_of_epoch */
        :: table_version[AT(table, epoch)] != 0 -> version[table] = table_version[AT(table, epoch)]
        :: else -> refuse()
        fi
#endif
    :: else ->
        d_step {
            wrote_table(table);
            must(reader_sees_its_epochs_and_no_other, PART(table_content[table], epoch) == 0);
            table_content[table] = WITH(table_content[table] | EMPTY, epoch, ROWS(manifest));
            table_epoch[table] = epoch;
            table_version[AT(table, epoch)] = table_content[table];
            version[table] = table_content[table];
            reader_looks()
        }
    fi;
    done = done | (1 << table)
}

#define HOLDS_ANOTHER(table) (table_epoch[table] != 0 && table_epoch[table] != epoch)
inline must_be_free() { /* code: sink/delta/tail/apply.py DeltaSink.must_be_free */
    if
    :: PREVIOUS(manifest) == 0 && (HOLDS_ANOTHER(0) || HOLDS_ANOTHER(1)) -> refuse()
    :: else
    fi
}

inline append() { /* code: sink/delta/epochs/table.py EpochsTable.append */
    if
    :: FENCED_EPOCHS -> lease_lost()
    :: else ->
        d_step {
            newest_row();
            if
            :: newest >= epoch
            :: else ->
                wrote_epochs();
                must(chain_has_no_gap, PREVIOUS(manifest) == newest);
                row_manifest[epoch] = manifest;
                row_version[AT(0, epoch)] = version[0];
                row_version[AT(1, epoch)] = version[1];
                ever_readable[epoch] = READER(manifest);
                reader_looks()
            fi
        }
    fi
}

inline put_plan() { /* code: state/store.py Store.put_plan */
    newest_manifest();
    if
    :: !GUARDED -> lease_lost()
#ifndef PLAN_REPLACED_AFTER_MANIFEST
    :: GUARDED && planned <= newest -> refuse()
#endif
    :: else ->
        d_step { wrote_store(); store_plan = planned }
    fi
}

inline put_manifest() { /* code: state/store.py Store.put_manifest */
    if
    :: !GUARDED -> lease_lost()
#ifndef PLAN_REPLACED_AFTER_MANIFEST
    :: GUARDED && store_manifest[epoch] != 0 && store_manifest[epoch] != manifest -> refuse()
#endif
    :: else ->
        d_step { wrote_store(); store_manifest[epoch] = manifest }
    fi
}

inline put_commit() { /* code: state/store.py Store.put_commit */
    if
    :: !GUARDED -> lease_lost()
    :: GUARDED && READER(store_manifest[epoch]) != READER(manifest) -> refuse()
    :: else ->
        d_step {
            wrote_store();
            if
            :: epoch >= store_committed -> store_committed = epoch; store_digest = READER(manifest)
            :: else
            fi
        }
    fi
}

inline take_up() { /* code: state/store.py Store.take_up */
    if
    :: !GUARDED -> lease_lost()
    :: else ->
        d_step {
            wrote_store();
            store_manifest[epoch] = manifest;
            if
            :: epoch >= store_committed -> store_committed = epoch; store_digest = READER(manifest)
            :: else
            fi
        }
    fi
}

inline take_over_epochs() { /* code: sink/delta/epochs/table.py EpochsTable.take_over */
#ifdef EPOCHS_TABLE_NOT_TAKEN_OVER
    epochs_holder = RANK
#else
    if
    :: FENCED_EPOCHS -> lease_lost()
#ifndef SAME_FENCE
    :: epochs_fence == fence -> lease_lost()
#endif
    :: else -> d_step { wrote_epochs() }
    fi
#endif
}

inline take_over_table(table) { /* code: sink/delta/tail/apply.py DeltaSink.take_over */
    if
    :: table_epoch[table] == 0
#ifdef TABLES_NOT_TAKEN_OVER
    :: else -> table_holder[table] = RANK
#else
    :: table_epoch[table] && FENCED_TABLE(table) -> lease_lost()
    :: else -> d_step { wrote_table(table) }
#endif
    fi;
    done = done | (1 << table)
}

#ifndef RESTORE_REMEMBERS
#define OF_A_LOST_EPOCH(table) (table_epoch[table] > undo && !(applies && table_epoch[table] == epoch))
#else
#define OF_A_LOST_EPOCH(table) (table_epoch[table] > undo)
#endif
inline restore(table) { /* code: sink/delta/upkeep/restore.py restore */
    if
    :: !OF_A_LOST_EPOCH(table)
    :: OF_A_LOST_EPOCH(table) && FENCED_TABLE(table) -> lease_lost()
    :: else ->
        d_step {
            wrote_table(table);
            highest = (table_epoch[table] > highest -> table_epoch[table] : highest);
            table_content[table] = row_version[AT(table, undo)];
#ifndef RESTORE_REMEMBERS
            table_epoch[table] = undo;
#endif
            reader_looks()
        }
    fi;
    done = done | (1 << table)
}

/* Where the feed goes on: `epoch` and `manifest`, whether to apply it, `undo` and `takes_up`. */
inline decide() { /* code: state/resume.py decide */
    newest_row();
    refused = 0;
    takes_up = 0;
    applies = 0;
    undo = 0;
    if
    :: stored == 0 && newest == 0 -> epoch = 0 /* code: state/resume.py Fresh */
    :: stored != 0 && newest == 0 ->
        if
        :: committed == 0 -> epoch = stored; manifest = stored_manifest; applies = 1
        :: else -> refused = 1
        fi
    :: stored != 0 && newest == stored ->
        if
        :: READER(row_manifest[newest]) != (committed == newest -> digest : READER(stored_manifest)) -> refused = 1
        :: else -> epoch = stored; manifest = stored_manifest; undo = newest
            takes_up = (committed < stored)
        fi
#ifdef STORE_BELIEVED
    :: stored != 0 && newest > stored -> /* The mistake: what the store does not know of is taken back. */
        epoch = stored; manifest = stored_manifest; undo = stored; row_manifest[newest] = 0; reader_looks()
#endif
    :: newest > stored -> /* code: state/resume.py Continue */
        epoch = newest; manifest = row_manifest[newest]; undo = newest; takes_up = (committed < newest)
    :: else ->
        if
        :: newest != PREVIOUS(stored_manifest) || committed > newest -> refused = 1
        :: else ->
#ifdef PLAN_REPLACED_AFTER_MANIFEST
            epoch = newest; manifest = row_manifest[newest]; highest = newest
#else
            epoch = stored; manifest = stored_manifest; applies = 1
#ifndef RESTORE_REMEMBERS
            undo = newest
#endif
#endif
        fi
    fi;
    stored = 0;
    stored_manifest = 0;
    committed = 0;
    digest = 0
}

/* A number above all that the run has seen: the lowest, as if the clock stood still. With a clock that moves it is also
 * above any number used before, known to this store or not. */
#ifdef CLOCK_GROWS
#define AFTER(number) ((clock > (number) -> clock : (number)) + 1)
#else
#define AFTER(number) ((number) + 1)
#endif
inline tick(number) { /* code: feed/clock.py Clock._tick */
#ifdef CLOCK_GROWS
    clock = number
#else
    skip
#endif
}

/* Everything of a run that a crash forgets. */
inline forget() {
    fence = 0; me = 0; stored = 0; stored_manifest = 0; committed = 0; digest = 0; epoch = 0; manifest = 0; planned = 0;
    undo = 0; applies = 0; takes_up = 0; highest = 0; done = 0; version[0] = 0; version[1] = 0
}

/* What the store says, in one transaction. */
inline look_at_store() { /* code: state/store.py Store.newest */
    newest_manifest();
    stored = newest;
    stored_manifest = store_manifest[newest];
    committed = store_committed;
    digest = store_digest;
    highest = store_plan
}

proctype Runner(bit second) {
    byte starts = STARTS;
    byte fence, me, stored, stored_manifest, committed, digest, epoch, manifest, planned, undo, highest, done;
    bit applies, takes_up;
    int version[TABLES];

end_dead:
    /* code: feed/runner.py run_feed */
    atomic {
        starts > 0 && (!second || holds > 0) -> /* The two are alike: one of them is the first. */
        starts--;
        alive++;
        fence = epochs_fence
    };
    atomic { /* code: state/lease.py hold */
        may_crash();
        d_step {
#ifdef FENCE_FROM_THE_STORE_ALONE
            fence = store_fence + 1;
#else
            fence = (store_fence > fence -> store_fence : fence) + 1;
#endif
            store_fence = fence;
            holds++;
            me = holds;
            store_holder = me
        }
    };

    /* code: feed/take_up.py take_up */
#ifndef DECIDES_EARLY
    atomic { may_crash(); take_over_epochs() };
#endif
    atomic { may_crash(); d_step { look_at_store() } };
    atomic {
        may_crash();
        d_step { decide() };
        if
        :: refused -> refuse()
        :: else
        fi
    };

    /* code: feed/settle.py take_over */
#ifdef DECIDES_EARLY
    atomic { may_crash(); take_over_epochs() };
#endif
    do
    :: atomic { epoch != 0 && done == 0 -> may_crash(); take_over_table(0) }
    :: atomic { epoch != 0 && done == 1 -> may_crash(); take_over_table(1) }
    :: atomic { epoch == 0 || done == 3 -> done = 0; break }
    od;

    /* code: feed/settle.py settle */
    if
    :: atomic { epoch == 0 -> epoch = AFTER(highest); goto begin }
    :: atomic { epoch != 0 -> highest = (highest > epoch -> highest : epoch) }
    fi;
#ifndef NOT_RESTORED
    do
    :: atomic { undo != 0 && done == 0 -> may_crash(); restore(0) }
    :: atomic { undo != 0 && done == 1 -> may_crash(); restore(1) }
    :: atomic { undo == 0 || done == 3 -> done = 0; undo = 0; break }
    od;
#endif
    if
    :: applies -> goto tables
    :: atomic { !applies && takes_up -> may_crash(); take_up() }
    :: else
    fi;
    goto turn;

begin: /* code: feed/take_up.py _begin */
    atomic {
        if
        :: epoch > EPOCHS -> goto dead
        :: else -> may_crash(); manifest = MANIFEST(me, 0); highest = epoch; tick(epoch); must_be_free()
        fi
    };
    goto write_manifest;

turn: /* code: feed/loop.py Loop.run */
    atomic {
        may_crash();
        done = 0; applies = 0; takes_up = 0; version[0] = 0; version[1] = 0;
        if
        :: planned != 0 -> goto read
        :: planned == 0 && AFTER(highest) > EPOCHS -> goto dead
        :: else -> planned = AFTER(highest); tick(planned); put_plan()
        fi
    };

read: /* code: feed/loop.py Loop._read_epoch */
    do
    :: atomic { AFTER(planned) <= EPOCHS -> may_crash(); planned = AFTER(planned); tick(planned); put_plan() }
    :: atomic { may_crash(); manifest = MANIFEST(me, epoch); epoch = planned; highest = planned; planned = 0; break }
    od;

write_manifest:
#ifndef MANIFEST_AFTER_APPLY
    atomic { may_crash(); put_manifest() };
#endif

tables: /* code: feed/applier.py Applier.apply */
    atomic { may_crash(); must_be_free() };
#ifdef ROW_BEFORE_TABLES
    atomic { may_crash(); version[0] = table_content[0]; version[1] = table_content[1]; append() };
#endif
    do /* code: sink/delta/tail/apply.py DeltaSink.apply_epoch */
    :: atomic { !(done & 1) -> may_crash(); apply(0) }
    :: atomic { !(done & 2) -> may_crash(); apply(1) }
    :: done == 3 -> break
#ifdef OVERLAP
    /* The next epoch is planned and read while this one is applied. */
    :: atomic {
        GUARDED && planned == 0 && AFTER(highest) <= EPOCHS ->
        may_crash(); planned = AFTER(highest); tick(planned); put_plan()
    }
#endif
    od;
#ifdef MANIFEST_AFTER_APPLY
    atomic { may_crash(); put_manifest() };
#endif
#ifdef COMMIT_BEFORE_ROW
    atomic { may_crash(); put_commit() };
    atomic { may_crash(); append() };
#else
    atomic { may_crash(); append() };
    atomic { may_crash(); put_commit() };
#endif
    goto turn;

dead:
    atomic { forget(); alive-- };
    goto end_dead
}

#ifdef REPLACED_UNDER_A_RUNNER
#define MAY_REPLACE true
#else
#define MAY_REPLACE (alive == 0)
#endif

/* A copy taken before the first commit is another search. */
#ifdef COPIED_AT_ANY_TIME
#define MAY_COPY true
#else
#define MAY_COPY (store_committed != 0)
#endif

/* Copies the store's file once, loses the store, puts the copy back. All runners are dead then, unless told otherwise. */
proctype Operator() {
end:
    do
#ifdef PUT_BACK
    :: atomic {
        !copied && replacements > 0 && MAY_COPY ->
        d_step {
            copied = 1;
            copy_fence = store_fence; copy_plan = store_plan;
            copy_committed = store_committed; copy_digest = store_digest; copy_holder = store_holder;
            for (i : 1 .. EPOCHS) { copy_manifest[i] = store_manifest[i] }
        }
    }
#endif
    :: atomic {
        replacements > 0 && MAY_REPLACE ->
        d_step {
            store_fence = 0; store_plan = 0; store_committed = 0; store_digest = 0; store_holder = 0;
            for (i : 1 .. EPOCHS) { store_manifest[i] = 0 }
            replaced = 1; replacements--
        }
    }
#ifdef PUT_BACK
    :: atomic {
        replacements > 0 && copied && MAY_REPLACE ->
        d_step {
            store_fence = copy_fence; store_plan = copy_plan;
            store_committed = copy_committed; store_digest = copy_digest; store_holder = copy_holder;
            for (i : 1 .. EPOCHS) { store_manifest[i] = copy_manifest[i] }
            replaced = 1; replacements--
        }
    }
#endif
    od
}

init {
    atomic {
        run Runner(0);
#if RUNNERS > 1
        run Runner(1);
#endif
        run Operator()
    }
}
