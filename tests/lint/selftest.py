#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lint that nothing trips proves nothing: each one must accept a small clean tree, and must
object, at the right place, when one violation is planted in it."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
C = '// SPDX-License-Identifier: MIT\n'
CARD = ''' *   SLOT_P1  a slot
 *    word      slot_shm.state
 *    writers   its owner
 *    order     A pairs with R
 *    death     nothing happened
 *    tests     unit/slot
'''

CLEAN = {
    'src/base/word.h': C + '#include <stdint.h>\n',
    'src/core/slot.h': C + '#include "base/word.h"\nstruct slot_shm {\n\tuint32_t state;\n'
                           '\t_Alignas(8) uint64_t bits[4 * 2];\n};\n',
    'src/core/slot.c': C + '/*\n * Slots.\n *\n' + CARD + ' */\n#include "core/slot.h"\n\n'
                       'int take(uint32_t *w)\n{\n\tstore_release(w, 1); /* SLOT_P1/R */\n'
                       '\t/* a hint only */\n\tif (load_relaxed(w) == 2)\n\t\treturn 1;\n'
                       '\treturn 0;\n}\n\n'
                       '/* Sees what take() published (SLOT_P1/A). */\nint look(uint32_t *w)\n{\n'
                       '\treturn load_acquire(w);\n}\n',
    'src/ipc/sem.c': C + '#include "core/slot.h"\n',
    'src/preload/entry.c': C + '#include "core/slot.h"\n#include <stdlib.h>\n',
    'tests/unit/slot.c': C + 'void f(void)\n{\n\tcompat_skip("pid-namespaces");\n}\n',
    'tests/run.sh': '#!/bin/sh\n# SPDX-License-Identifier: MIT\nexit 0\n',
    'doc/COMPAT.md': '# Differences\n\n## pid-namespaces\n\nSee doc/PROTOCOLS.md.\n',
    'doc/PROTOCOLS.md': '| card | protocol | file |\n|---|---|---|\n'
                        '| SLOT_P1 | a slot | src/core/slot.c |\n',
}

# lint, file, text to replace (None: append), replacement, expected in the complaint
PLANTED = [
    ('layers', 'src/core/slot.h', None, '#include "ipc/sem.h"\n', 'is no file below src/'),
    ('layers', 'src/base/word.h', None, '#include "core/slot.h"\n', 'base may not include core'),
    ('layers', 'src/ipc/sem.c', None, '#include <stdlib.h>\n', 'allocates nothing'),
    ('layers', 'src/other/a.c', None, C, 'lies in no layer'),
    ('protocols', 'src/core/slot.c', ' /* SLOT_P1/R */', '', 'store_release without a protocol'),
    ('protocols', 'src/core/slot.c', 'store_release(w, 1); /* SLOT_P1/R */',
     'store_release(w,\n\t\t1);', 'store_release without a protocol'),
    ('protocols', 'src/core/slot.c', ' (SLOT_P1/A)', '', 'load_acquire without a protocol'),
    ('protocols', 'src/core/slot.c', 'SLOT_P1/R', 'SLOT_P1/A', 'is an end R'),
    ('protocols', 'src/core/slot.c', 'SLOT_P1/R', 'SLOT_P2/R', 'SLOT_P2 has no card'),
    ('protocols', 'src/core/slot.c', 'store_release(w, 1); /* SLOT_P1/R */', 'plain(w);',
     'SLOT_P1 has only the end A'),
    ('protocols', 'src/core/slot.c', '\t/* a hint only */\n', '', 'load_relaxed without a reason'),
    ('protocols', 'src/core/slot.c', ' *    death     nothing happened\n', '', 'no row "death"'),
    ('protocols', 'src/core/slot.c', 'unit/slot', 'unit/nowhere', 'test unit/nowhere'),
    ('protocols', 'src/core/slot.c', ' */\n#include', ' *\n' + CARD + ' */\n#include',
     'has a card in'),
    ('protocols', 'src/ipc/sem.c', None, 'int a(int *p)\n{\n\treturn cas(p, &p, 1);\n}\n',
     'cas without a protocol'),
    ('protocols', 'src/ipc/sem.c', None, 'void a(int *p)\n{\n\t__atomic_store_n(p, 1, 5);\n}\n',
     'use the names of base/atomic.h'),
    ('protocols', 'src/ipc/sem.c', None, 'static volatile int ready;\n', 'volatile orders nothing'),
    ('protocols', 'doc/PROTOCOLS.md', 'src/core/slot.c', 'src/ipc/sem.c', 'SLOT_P1 lies in'),
    ('protocols', 'doc/PROTOCOLS.md', '| SLOT_P1 |', '| SLOT_P9 |', 'does not list SLOT_P1'),
    ('protocols', 'doc/PROTOCOLS.md', None, '| SLOT_P9 | x | y |\n', 'has no card'),
    ('shm_structs', 'src/core/slot.h', 'uint32_t state;', 'uint32_t *state;', 'pointer in struct'),
    ('shm_structs', 'src/core/slot.h', 'uint32_t state;', 'size_t state;', 'no fixed width'),
    ('shm_structs', 'src/core/slot.h', 'uint32_t state;', 'void (*state)(void);',
     'pointer in struct'),
    ('shm_structs', 'src/core/slot.h', None, 'typedef long lock_shm;\n', 'no type of fixed width'),
    ('shm_structs', 'src/core/slot.h', 'slot_shm', 'slot', 'no shared structure found'),
    ('text', 'src/core/slot.c', C, '', 'no line "SPDX'),
    ('text', 'tests/run.sh', '# SPDX-License-Identifier: MIT\n', '', 'no line "SPDX'),
    ('text', 'src/core/slot.c', None, 'int a;\n' * 800, '800 is the most'),
    ('text', 'src/core/slot.c', None, '\t// ' + 'a' * 90 + '\n', '101 columns'),
    ('text', 'src/core/slot.c', None, 'int a; \n', 'trailing blanks'),
    ('text', 'src/core/slot.c', None, 'int a;\r\n', 'CRLF'),
    ('text', 'src/core/slot.c', None, 'int a;', 'no newline at the end'),
    ('text', 'src/core/slot.c', None, '\n', 'blank lines at the end'),
    ('text', 'src/core/slot.c', None, '/* TO' 'DO: more */\n', 'finish it'),
    ('text', 'doc/COMPAT.md', None, 'X' 'XX\n', 'finish it'),
    ('text', 'src/core/slot.c', None, '/* see NOWHERE.m' 'd */\n', 'is no page of this project'),
    ('text', 'doc/COMPAT.md', None, 'lies in /ho' 'me/me\n', 'on somebody'),
    ('compat', 'tests/unit/slot.c', 'pid-namespaces', 'made-up', 'has no entry "made-up"'),
    ('compat', 'tests/run.sh', None, 'compat_skip made-up\n', 'has no entry "made-up"'),
    ('compat', 'doc/COMPAT.md', '## pid-namespaces', 'pid-namespaces', 'has no entry'),
]


def lint(name, tree):
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), 'w', encoding='utf-8', newline='') as f:
                f.write(text)
        run = subprocess.run([sys.executable, os.path.join(HERE, name + '.py'), root],
                             capture_output=True, text=True, timeout=60, check=False)
    return run.returncode, run.stdout + run.stderr


def main():
    failures = 0
    names = sorted({p[0] for p in PLANTED})
    for name in names:
        status, output = lint(name, CLEAN)
        if status != 0:
            failures += 1
            print(f'{name}: objects to the clean tree (status {status}):\n{output}')
    for name, path, old, new, expected in PLANTED:
        tree = dict(CLEAN)
        if old is None:
            tree[path] = tree.get(path, '') + new
        elif old not in tree[path]:
            failures += 1
            print(f'{name}: the clean {path} has no {old!r} to replace')
        else:
            tree[path] = tree[path].replace(old, new)
        status, output = lint(name, tree)
        if (status != 1 or expected not in output):
            failures += 1
            print(f'{name}: {path} with {new!r}: expected {expected!r}, got status {status}:\n'
                  f'{output}')
    print(f'{len(names)} lints, {len(PLANTED)} planted violations, {failures} failures')
    sys.exit(1 if failures else 0)


main()
