#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutants.py ROOT FOLDER CC...: does anything notice?
mutants.py --apply ROOT: is there a place for each?

Each mutant is the engine with one step left out or put in the wrong place. It is built in FOLDER
and run against the test that ought to see it; a mutant that passes there is a hole in the tests,
and the run fails. The sources as they are must pass first.
"""
import os
import shutil
import subprocess
import sys

FLAGS = ['-std=gnu17', '-O1', '-g', '-D_GNU_SOURCE', '-pthread', '-fvisibility=hidden']
SECONDS = 120
STEP = ['crash/step.c', 'crash/stepper.c', 'crash/trace.c', 'crash/view.c', 'crash/scenes-life.c',
        'crash/scenes-msg.c', 'crash/scenes-pair.c', 'crash/scenes-sem.c', 'crash/scenes-shm.c']

# name, file below src/, [(text, replacement)], program, its arguments
MUTANTS = [
    ('wake-not-owed', 'ipc/sem_set.c',
     [('store_crash(&self->owes_wake, v->ix + 1);', ';')],
     'step', ['-1', '-d', '0', 'sem/semop/hand-off']),
    ('told-not-woken-by-repair', 'ipc/sem_repair.c',
     [('\tsem_wake_told(c, set_ix);\n}', '}')],
     'step', ['-1', '-d', '0', 'sem/semop/hand-off']),
    ('repair-does-not-serve', 'ipc/sem_repair.c',
     [('\t\tsem_serve(c, &v, NULL, 0, &wakes);\n', '')],
     'step', ['-1', '-d', '0', 'sem/semop/hand-off']),
    ('intent-before-what-it-says', 'ipc/sem_set.c',
     [('\tset->intent_thread = thread_ix;\n\tset->intent_result = result;\n',
       '\tstore_crash(&set->intent, kind);\n\tset->intent_thread = thread_ix;\n'
       '\tset->intent_result = result;\n')],
     'step', ['-1', '-d', '0', 'sem/semop/hand-off']),
    ('semadj-after-the-release', 'ipc/sem_word.c',
     [('\t\t\t\tu->adj[e->undo_ix] = e->adj;\n', '\t\t\t\tcrash_barrier();\n'),
      ('\t\trelease_word(s, word, committed ? e->new_word : e->old_word);\n',
       '\t\trelease_word(s, word, committed ? e->new_word : e->old_word);\n'
       '\t\tcrash_barrier();\n'
       '\t\tif (committed && e->undo_ref)\n'
       '\t\t\t((struct undo_shm *)region_at(c->base, (uint64_t)e->undo_ref * 64))\n'
       '\t\t\t\t->adj[e->undo_ix] = e->adj;\n')],
     'step', ['-1', '-d', '0', 'sem/semop/several']),
    ('semadj-of-a-word-that-is-out', 'ipc/sem_word.c',
     [('\t\tif (!s || !holds(word, thread_ix))\n\t\t\tcontinue;\n',
       '\t\tif (committed && e->undo_ref)\n'
       '\t\t\t((struct undo_shm *)region_at(c->base, (uint64_t)e->undo_ref * 64))\n'
       '\t\t\t\t->adj[e->undo_ix] = e->adj;\n'
       '\t\tif (!s || !holds(word, thread_ix))\n\t\t\tcontinue;\n')],
     'sem-word', []),
    ('hold-entered-after-the-cas', 'ipc/sem_word.c',
     [('\t\tstore_crash(&self->hold, k + 1); /* SEM_H1/R */\n', ''),
      ('\t\t\t\tSEM_HELD)) /* SEM_W1/A */\n\t\t\treturn OUTCOME_DONE;\n',
       '\t\t\t\tSEM_HELD)) {\n\t\t\tstore_crash(&self->hold, k + 1);\n'
       '\t\t\treturn OUTCOME_DONE;\n\t\t}\n')],
     'step', ['-1', '-d', '0', 'sem/semop/several']),
    ('grant-ignores-the-request', 'ipc/sem_set.c',
     [('WAIT_REQUEST(st) == set->intent_request && ', '')],
     'sem-set', []),
    ('removal-keeps-generations', 'ipc/sem_set.c',
     [('\t\tstore_release(&view_word(v, num)->word, 0);', '\t\t(void)num;')],
     'sem-set', []),
    ('purge-names-twice', 'ipc/sem.c',
     [('t->name_ref[NAME_FLY] == set->words_ref)', 'false)')],
     'repair', []),
    ('busy-for-own-hold', 'ipc/sem_set.c',
     [('\t\tif (rc != OUTCOME_DONE)\n\t\t\treturn rc;\n\t\tseen = load_acquire(&s->word);',
       '\t\tif (rc != OUTCOME_DONE)\n\t\t\treturn OUTCOME_BUSY;\n'
       '\t\tseen = load_acquire(&s->word);')],
     'sem-word', []),
    ('record-out-of-chain-for-ever', 'ipc/sem_undo.c',
     [('\tif (record)\n\t\tstore_crash(&record->gen, 0);', '\t(void)record;')],
     'sem-undo', []),
    ('first-record-not-announced', 'ipc/sem_undo.c',
     [('\tif (is_first)\n\t\tsem_undo_announce(c);\n', '\t(void)is_first;\n')],
     'sem-undo', []),
    ('record-in-flight-forgotten', 'ipc/repair.c',
     [('if (p && p->undo_ref && p->undo_ref == t->name_ref[NAME_FLY])', 'if (p && c == NULL)')],
     'sem-undo', []),
    ('slot-freed-by-two-stores', 'ipc/repair.c',
     [('\t\tstore_release(&p->state, PROC_FREE); /* REG_P2/R */\n',
       '\t\tstore_crash(&p->claim, CLAIM_WORD(CLAIM_GEN(p->claim) + 1, 0, 0));\n'
       '\t\tstore_release(&p->state, PROC_FREE);\n')],
     'step', ['-1', '-d', '0', 'life/exit']),
    ('creation-not-finished', 'ipc/repair.c',
     [('\t\tfamilies[family].created(c, dead_ix);\n', '\t\t;\n')],
     'step', ['-1', '-d', '0', 'sem/semget/creates']),
    ('chunk-left-at-exit', 'ipc/repair.c',
     [('\t\trc = arena_settle(c);\n', '\t\t;\n')],
     'repair', []),
    ('block-named-after-it-is-taken', 'core/arena.c',
     [('\tstore_crash(&self->name_ref[name], block_ref(arena, p.chunk_ix, class, block));\n', ''),
      ('\tif (--p.chunk->free_count == 0)\n',
       '\tstore_crash(&self->name_ref[name], block_ref(arena, p.chunk_ix, class, block));\n'
       '\tif (--p.chunk->free_count == 0)\n')],
     'step', ['-1', '-d', '0', 'life/block']),
    ('void-chunk-name-stays', 'core/arena.c',
     [('\tif (t && !named_chunk(c->base, t->chunk_link, &arena, &ix))\n',
       '\tif (t && (ix = 0, arena = 0, false))\n')],
     'arena', []),
    ('names-of-the-victim-stay', 'core/arena.c',
     [('\tclear_void_names(c, victim);\n', '\t(void)victim;\n')],
     'arena', []),
    ('claim-ignores-the-claimers-generation', 'core/rlock.c',
     [('if ((gen & 0xfffff) == CLAIM_CLAIMER_GEN(seen) && (gen & 1)) {', 'if (gen | 1) {')],
     'rlock', []),
    ('claim-by-a-store', 'core/rlock.c',
     [('\tif (cas(&dead->claim, &seen, mine)) /* REG_P1/AR */\n',
       '\tstore_release(&dead->claim, mine);\n\tif (c) /* REG_P1/AR */\n')],
     'rlock', []),
    ('false-claim-stands', 'core/rlock.c',
     [('\tif (says_so || load_acquire(', '\tif (c || says_so || load_acquire(')],
     'rlock', []),
    ('true-claim-taken-for-a-false-one', 'core/rlock.c',
     [('\tif (says_so || load_acquire(', '\tif (load_acquire(')],
     'rlock', []),
    ('recovery-does-not-pass-the-wake-on', 'core/rlock.c',
     [('\t\tfutex_wake(word, 1);\n\t} else {', '\t} else {')],
     'step', ['-1', '-d', '0', 'sem/semop/hand-off']),
    ('debt-not-named', 'core/rlock.c',
     [('\tstore_crash(&region_self(c)->held, (uint32_t)c->busy.word_off);\n', '')],
     'rlock', []),
    ('debt-not-paid', 'core/rlock.c',
     [('\tif (c->owed && c->owed != off)\n\t\trlock_settle(c);\n', '')],
     'rlock', []),
    ('published-choice-forgotten', 'core/ids.c',
     [('created && dead->op_chosen) {', 'created && dead->op_chosen && false) {')],
     'ids', []),
    ('removed-queue-gives-a-void-name', 'ipc/msg.c',
     [('\tdrop_void_name(q, t);\n', '\t(void)drop_void_name;\n')],
     'step', ['-1', '-d', '0', 'msg/IPC_RMID/large']),
    ('pocket-and-fly-both-given', 'ipc/msg_queue.c',
     [('\tif (t->name_ref[NAME_FLY] && t->name_ref[NAME_FLY] == t->name_ref[NAME_POCKET])\n'
       '\t\tstore_crash(&t->name_ref[NAME_FLY], 0); /* MSG_B1 */\n', '')],
     'step', ['-1', '-t', '0', 'msg/msgrcv/the']),
    ('message-linked-before-the-intent', 'ipc/msg_queue.c',
     [('\tactor->op_family = FAMILY_MSG;\n\tactor->op_ix = v->ix;\n\tstore_crash(&actor->op, op);',
       '\tactor->op_family = FAMILY_MSG;\n\tactor->op_ix = v->ix;\n\t(void)op;')],
     'step', ['-1', '-d', '0', 'msg/msgrcv']),
    ('queue-repair-forgets-senders', 'ipc/msg_repair.c',
     [('\t\tmsg_admit(c, &v, dead, dead->op_time, &wakes);\n', '')],
     'step', ['-1', '-d', '0', 'msg/msgrcv/admits']),
    ('queue-repair-wakes-nobody', 'ipc/msg_repair.c',
     [('\tmsg_wake_told(c, ix);\n}', '}')],
     'step', ['-1', '-d', '0', 'msg/msgsnd/hand-off']),
    ('queue-wake-not-owed', 'ipc/msg_queue.c',
     [('\t\tstore_crash(&self->msg_owes_wake,\n\t\t\t    v->ix + 1);', '\t\t(void)v;')],
     'step', ['-1', '-d', '0', 'msg/msgsnd/hand-off']),
    ('pocket-stays-in-the-cache', 'ipc/msg_block.c',
     [('\t\t\tif (dead->name_ref[NAME_POCKET] == ref)\n'
       '\t\t\t\tstore_crash(&dead->name_ref[NAME_POCKET], 0);\n', '\t\t\t(void)dead;\n')],
     'step', ['-1', '-d', '0', 'msg/msgrcv/blocks']),
    ('handed-message-named-twice', 'ipc/msg_repair.c',
     [('\tif (t->name_ref[NAME_FLY] == dead->op_block_ref)\n'
       '\t\tstore_crash(&t->name_ref[NAME_FLY], 0); /* MSG_B1 */\n', '')],
     'step', ['-1', '-d', '0', 'msg/msgsnd/hand-off']),
    ('received-message-stays-named', 'ipc/msg_repair.c',
     [('\t\t\tstore_crash(&dead->name_ref[NAME_FLY], 0); /* MSG_B1 */\n', '\t\t\t;\n')],
     'step', ['-1', '-d', '0', 'msg/msgrcv']),
    ('ipc-set-of-a-segment-not-finished', 'ipc/shm.c',
     [('\tif (s && s->intent)\n', '\tif (s && s->intent && c == NULL)\n')],
     'step', ['-1', '-d', '0', 'shm/IPC_SET']),
    ('purge-of-a-segment-after-live', 'ipc/shm.c',
     [('\t\tstore_crash(&self->op, OP_PURGE);\n\t\tstore_release(&o->live, 0); /* ID_P1/R commit */\n',
       '\t\tstore_release(&o->live, 0); /* ID_P1/R commit */\n\t\tstore_crash(&self->op, OP_PURGE);\n')],
     'step', ['-1', '-d', '0', 'shm/IPC_RMID']),
    ('purge-that-did-not-begin-stays', 'ipc/shm.c',
     [('\t\tstore_crash(&dead->op, OP_NONE);\n', '\t\t;\n')],
     'step', ['-2', 'shm/destruction and destruction']),
    ('attach-block-linked-and-named', 'ipc/shm_attach.c',
     [('\tif (ref && chain_has(', '\tif (ref && c == NULL && chain_has(')],
     'step', ['-1', '-d', '0', 'shm/shmat']),
    ('attach-block-freed-in-its-chain', 'ipc/repair.c',
     [('\tif (p && t->name_ref[NAME_FLY] &&\n\t    load_acquire(&p->attach_ref)',
       '\tif (p && t->name_ref[NAME_FLY] && c == NULL &&\n\t    load_acquire(&p->attach_ref)')],
     'step', ['-1', '-d', '0', 'shm/burial']),
    ('childs-slot-not-the-victim', 'ipc/shm_attach.c',
     [('\tstore_crash(&self->victim_proc_link, child_ix + 1);\n', '')],
     'step', ['-1', '-d', '0', 'shm/fork']),
    ('reserved-slot-emptied-before-who-is-at-it-is-buried', 'ipc/repair.c',
     [('\tint rc = bury_who_is_at(c, proc_ix);\n', '\tint rc = c ? 0 : bury_who_is_at(c, proc_ix);\n')],
     'shm-attach', []),
    ('next-image-empties-before-it-buries', 'ipc/repair.c',
     [('\t\tif ((uint32_t)owner == c->proc_ix + 1 &&', '\t\tif (0 && (uint32_t)owner == c->proc_ix + 1 &&')],
     'shm-attach', []),
    ('burier-does-not-name-its-victim', 'core/rlock.c',
     [('\tstore_crash(record, link); /* REG_P1/R: by the CAS */\n', '\tstore_crash(record, 0 & link);\n')],
     'step', ['-1', '-t', '0', 'life/burial/undo']),
]


class Build:
    def __init__(self, root, folder, compiler):
        self.root = root
        self.folder = folder
        self.compiler = compiler
        self.objects = {}
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for layer in ('base', 'core', 'ipc'):
            for name in sorted(os.listdir(os.path.join(root, 'src', layer))):
                if name.endswith('.c') and name != 'futex.c':
                    self.objects[f'{layer}/{name}'] = self.compile(
                        os.path.join(root, 'src', layer, name), f'{layer}-{name}.o')
        self.test_objects = {}

    def compile(self, source, to):
        to = os.path.join(self.folder, to)
        subprocess.run(self.compiler + FLAGS +
                       ['-I', os.path.join(self.root, 'src'), '-I',
                        os.path.join(self.root, 'tests'), '-c', source, '-o', to], check=True)
        return to

    def test_object(self, path):
        if path not in self.test_objects:
            self.test_objects[path] = self.compile(
                os.path.join(self.root, 'tests', path), 'test-' + path.replace('/', '-') + '.o')
        return self.test_objects[path]

    def program(self, name, objects, to):
        own = STEP if name == 'step' else [f'unit/{name}.c', 'unit/unit.c']
        path = os.path.join(self.folder, to)
        subprocess.run(self.compiler + FLAGS +
                       [self.test_object(p) for p in own + ['harness/engine.c']] +
                       list(objects.values()) + ['-Wl,-z,now', '-lcmocka', '-o', path], check=True)
        return path

    def mutant(self, name, file, text):
        source = os.path.join(self.folder, name + '.c')
        with open(source, 'w', encoding='utf-8') as f:
            f.write(text)
        return {**self.objects, file: self.compile(source, name + '.o')}


def mutate(root, name, file, changes):
    """The mutant's text; None when it has no place."""
    with open(os.path.join(root, 'src', file), encoding='utf-8') as f:
        text = f.read()
    for old, new in changes:
        if text.count(old) != 1:
            print(f'{name}: {file} has {text.count(old)} places like this:\n{old}')
            return None
        text = text.replace(old, new)
    return text


def apply_all(root):
    lost = [m[0] for m in MUTANTS if mutate(root, m[0], m[1], m[2]) is None]
    print(f'{len(MUTANTS)} mutants, {len(lost)} without a place')
    sys.exit(1 if lost else 0)


def run(program, args):
    """The exit status; None when it does not end."""
    try:
        return subprocess.run([program] + args, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=SECONDS).returncode
    except subprocess.TimeoutExpired:
        return None


def main(root, folder, compiler):
    build = Build(root, folder, compiler)
    failures = 0
    for program, args in sorted({(m[3], tuple(m[4])) for m in MUTANTS}):
        status = run(build.program(program, build.objects, 'sound'), list(args))
        if status == 77:
            print(f'{program} cannot run here')
            sys.exit(77)
        if status != 0:
            print(f'{program} {" ".join(args)} fails by itself: {status}')
            failures += 1
    for name, file, changes, program, args in MUTANTS:
        text = mutate(root, name, file, changes)
        if text is None:
            failures += 1
            continue
        path = build.program(program, build.mutant(name, file, text), 'mutant')
        status = run(path, args)
        verdict = 'SURVIVES' if status == 0 else 'caught'
        failures += status == 0
        print(f'{verdict:9} {name} by {program} {" ".join(args)}', flush=True)
    print(f'{len(MUTANTS)} mutants, {failures} failures')
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failures else 0)


if sys.argv[1] == '--apply':
    apply_all(sys.argv[2])
main(sys.argv[1], sys.argv[2], sys.argv[3:])
