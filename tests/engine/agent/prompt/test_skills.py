import pytest

from errand.engine.agent.prompt.skills import front_matter

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("yaml_lines", "description"),
    [
        ("description: How to release.", "How to release."),
        ("description:   How to release.   # not told", "How to release."),
        ("description: Use it when: a file is a PDF, or C# code", "Use it when: a file is a PDF, or C# code"),
        ('description: "Use: \\"all\\" of it\\nnow"  # not told', 'Use: "all" of it now'),
        ("description: 'It''s # told'", "It's # told"),
        ("description: >-\n  Two\n  lines.\n\n  And more.\nlicense: MIT", "Two lines. And more."),
        ("description: |\n  Two\n  lines.", "Two lines."),
        ("description: Two\n  lines.", "Two lines."),
        ("description:\n  Below.", "Below."),
        ("metadata:\n  description: inner\ndescription: outer", "outer"),
        ("description: 日本語", "日本語"),
        ("description: 42", "42"),
        ("description: [a, list]", ""),
        ("description: {a: map}", ""),
        ("description: &anchor text", ""),
        ("description: *reference", ""),
        ("description: !!python/object:os.system text", ""),
        ('description: "not closed', ""),
        ("description:", ""),
        ("# description: a comment", ""),
        (f"{BOMB}description: *i", ""),
    ],
)
def test_description_is_read_in_all_common_yaml_forms(yaml_lines: str, description: str) -> None:
    fields = front_matter(f"---\r\nname: x\r\n{yaml_lines}\n---\nThe body.\ndescription: no more\n")
    assert (fields["name"], fields.get("description", "")) == ("x", description)


@pytest.mark.parametrize("text", ["", "name: x", "----\nname: x\n---", "\n---\nname: x\n---", "--- a\nname: x\n---"])
def test_text_without_leading_dashes_has_no_front_matter(text: str) -> None:
    assert front_matter(text) == {}


def test_unclosed_front_matter_is_read_to_the_end() -> None:
    assert front_matter("---\nname: x\ndescription: y") == {"name": "x", "description": "y"}


@pytest.mark.parametrize("unit", ["a: ", '"\\', "' ", "x: >\n ", "\t", "# ", "a: '''", "---", "- "])
def test_front_matter_is_read_in_linear_time(unit: str) -> None:
    front_matter("---\n" + unit * 100_000)  # a backtracking pattern would hang for hours
    front_matter("---\nname: " + unit * 100_000)
