# SPDX-License-Identifier: MIT
"""What the lints share: which files there are, C with its comments told apart, reporting.

A lint is a program `NAME.py ROOT` that prints `file:line: what is wrong` for each violation and
exits 1 if there was one. selftest.py plants violations and expects each lint to find them.
"""
import os
import re
import sys

SOURCE_SUFFIXES = ('.c', '.h', '.S')
SCRIPT_SUFFIXES = ('.sh', '.py', '.pl', '.php')
TEXT_SUFFIXES = ('.md', '.scd', '.build', '.txt', '.map', '.bash')
PLAIN_NAMES = ('Makefile', 'LICENSE', '.clang-format', '.clang-tidy', '.gitignore', 'run')


def files(root, suffixes, below=''):
    """Paths relative to root, sorted; neither build folders nor what git keeps."""
    root = os.path.normpath(root)
    found = []
    for folder, subfolders, names in os.walk(os.path.normpath(os.path.join(root, below))):
        subfolders[:] = sorted(
            d for d in subfolders
            if d not in ('.git', '__pycache__')
            and not (folder == root and (d == 'build' or d.startswith('build-'))))
        found += [os.path.relpath(os.path.join(folder, n), root) for n in sorted(names)
                  if n.endswith(suffixes)]
    return found


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8', newline='') as f:
        return f.read()


class Source:
    """A C file as two lists of lines of equal length: code alone, and comments alone.

    String and character literals are emptied in the code. In `comment` a line holds the text of
    the comment on it, or None when there is none.
    """

    TOKEN = re.compile(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def __init__(self, text):
        code = []
        comments = {}
        line = 1
        last = 0
        for match in self.TOKEN.finditer(text):
            before = text[last:match.start()]
            code.append(before)
            line += before.count('\n')
            token = match.group()
            if token.startswith('/'):
                for i, part in enumerate(token.split('\n')):
                    comments[line + i] = (comments.get(line + i, '') + ' ' + part).strip()
                code.append('\n' * token.count('\n') or ' ')
            else:
                code.append(token[0] * 2)
            line += token.count('\n')
            last = match.end()
        code.append(text[last:])
        self.code = ''.join(code).split('\n')
        self.comment = [comments.get(i + 1) for i in range(len(self.code))]

    def only_comment(self, i):
        return self.comment[i] is not None and not self.code[i].strip()

    def comment_above(self, i):
        """The comment that ends on the line above line i, as one text; '' when there is none."""
        parts = []
        i -= 1
        while i >= 0 and self.only_comment(i):
            parts.append(self.comment[i])
            i -= 1
        return '\n'.join(reversed(parts))

    def statement_start(self, i):
        """The first line of the statement that line i belongs to."""
        while i > 0:
            above = self.code[i - 1].strip()
            if not above or above.startswith('#') or above.endswith((';', '{', '}', ':')):
                break
            i -= 1
        return i

    def statement_end(self, i):
        """The last line of the statement that line i belongs to."""
        while i + 1 < len(self.code):
            if self.code[i].strip().endswith((';', '{', '}')) or not self.code[i + 1].strip():
                break
            i += 1
        return i

    def functions(self):
        """(first line of the head, line of the opening brace, line of the closing brace)."""
        start = None
        for i, line in enumerate(self.code):
            if line.startswith('{'):
                start = i
            elif line.startswith('}') and start is not None:
                yield self.statement_start(start), start, i
                start = None


def comment_lines(source):
    """(line number, text without decoration) of each comment line, None where a comment ends."""
    for i, text in enumerate(source.comment):
        if text is None:
            yield i, None
        else:
            yield i, re.sub(r'\s*\*/\s*$', '', re.sub(r'^\s*(?:/\*+|//+|\*)(?: |$)?', '', text))


class Report:
    def __init__(self):
        self.count = 0

    def __call__(self, path, line, message):
        self.count += 1
        print(f'{path}:{line}: {message}')

    def exit(self):
        sys.exit(1 if self.count else 0)
