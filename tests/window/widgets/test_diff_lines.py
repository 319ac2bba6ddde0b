"""The lines of a diff: numbers, folds, words, escaped and shortened text, two columns."""

from errand.window.widgets.diff.lines import (
    DiffLine,
    changed_words,
    diff_lines,
    diff_name,
    is_complete,
    line_counts,
    paired,
    side_by_side,
)

DIFF = """\
--- a.py
+++ a.py
@@ -3,4 +3,5 @@
 import os
-def alpha(beta, gamma):
+def alpha(beta, delta):
+    pass
 
 x = 1
@@ -30,2 +31,1 @@
-end()
 last
\\ No newline at end of file
"""


def test_lines_have_their_numbers_and_what_is_between_hunks_is_folded() -> None:
    assert diff_lines(DIFF) == [
        DiffLine("fold", "⋯ 2 unchanged lines", hunk=0),
        DiffLine("context", " import os", 3, 3, 0),
        DiffLine("removed", "-def alpha(beta, gamma):", 4, 0, 0),
        DiffLine("added", "+def alpha(beta, delta):", 0, 4, 0),
        DiffLine("added", "+    pass", 0, 5, 0),
        DiffLine("context", " ", 5, 6, 0),
        DiffLine("context", " x = 1", 6, 7, 0),
        DiffLine("fold", "⋯ 23 unchanged lines", hunk=1),
        DiffLine("removed", "-end()", 30, 0, 1),
        DiffLine("context", " last", 31, 31, 1),
        DiffLine("end", "No newline at the end of the file", hunk=1),
    ]
    assert (diff_name(DIFF), line_counts(diff_lines(DIFF)), is_complete(diff_lines(DIFF))) == ("a.py", (2, 2), True)


def test_a_new_file_begins_at_line_one_without_a_fold() -> None:
    assert diff_lines("@@ -0,0 +1,2 @@\n+a\n+b\n") == [
        DiffLine("added", "+a", 0, 1, 0),
        DiffLine("added", "+b", 0, 2, 0),
    ]


def test_changed_lines_that_look_like_headers_are_changes() -> None:
    lines = diff_lines("--- q.sql\n+++ q.sql\n@@ -1,2 +1,2 @@\n--- one\n-@@ -1 +1 @@\n+++ two\n+x\n")
    assert [(line.kind, line.text) for line in lines] == [
        ("removed", "--- one"),
        ("removed", "-@@ -1 +1 @@"),
        ("added", "+++ two"),
        ("added", "+x"),
    ]


def test_what_is_left_out_is_a_note_also_inside_a_hunk() -> None:
    lines = diff_lines("--- a\n+++ a\n@@ -1,9 +1,9 @@\n a\n-b\n… the rest of the diff is left out\n")
    assert lines[-1] == DiffLine("note", "… the rest of the diff is left out", hunk=0)
    assert not is_complete(lines)
    too_large = diff_lines("Too large to be compared: 9 characters.\n+z\n")
    assert [line.kind for line in too_large] == ["note", "added"]


def test_hidden_characters_are_escaped_and_long_lines_cut_on_request() -> None:
    assert diff_lines("@@ -0,0 +1 @@\n+a\u202eb\x1b[31m\x0c\n")[0].text == "+a\\u202eb\\u001b[31m\\u000c"
    (line,) = diff_lines("@@ -0,0 +1 @@\n+" + "x" * 1_000_000 + "\n", longest=100)
    assert line.text == f"+{'x' * 99} … 999,901 more characters"


def test_words_that_differ_are_marked_unless_nearly_all_do() -> None:
    assert changed_words("-def alpha(beta, gamma):", "+def alpha(beta, delta):") == ((17, 22),)
    assert changed_words("-one", "+something else") == ()
    assert changed_words("-same", "+same") == ()


def test_a_line_is_compared_with_the_one_that_it_became() -> None:
    lines = diff_lines("@@ -1,2 +1,3 @@\n-def f(a):\n-    return a + b\n+def f(c):\n+    pass\n+    return a + c\n")
    assert [pair.text if (pair := paired(lines, at)) else "" for at in (0, 1, 2)] == [
        "+def f(c):",
        "+    return a + c",
        "-def f(a):",
    ]


def test_side_by_side_each_change_begins_in_the_same_row() -> None:
    left, right = side_by_side(diff_lines("@@ -1,3 +1,4 @@\n a\n-b\n+c\n+d\n e\n-f\n+g\n"))
    assert [line.text if line else "" for line in left] == [" a", "-b", "", " e", "-f"]
    assert [line.text if line else "" for line in right] == [" a", "+c", "+d", " e", "+g"]
