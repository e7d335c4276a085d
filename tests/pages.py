"""Reads the project's Markdown pages and finds what is wrong in their code blocks and links.

Each ``..._problems`` function returns one line for each problem.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from airflow_hive_opt.commands.main import _parser
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.parse import parse, why_unsupported
from airflow_hive_opt.statement.script import split_settings

PROJECT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "docker/*.md",
        ".github/*.md",
        "benchmarks/results/*.md",
    )
    for path in PROJECT.glob(pattern)
)
_UNSUPPORTED = "unsupported"  # the second word of "```sql unsupported"
_SHELL = ("", "sh", "shell", "bash", "console")
_FENCE = re.compile(r"^```(.*)$")
_TEMPLATE = re.compile(r"\{\{.*?\}\}")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A code block: the words after its fence (empty for an indented block), and its text."""

    line: int
    words: tuple[str, ...]
    text: str

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""


def blocks(page: str) -> list[Block]:
    """The fenced and the indented code blocks of a page."""
    found: list[Block] = []
    lines = page.splitlines()
    at = 0
    while at < len(lines):
        start = at
        fence = _FENCE.match(lines[at])
        if fence:
            at += 1
            while at < len(lines) and not lines[at].startswith("```"):
                at += 1
            text = lines[start + 1 : at]
            found.append(Block(start + 1, tuple(fence[1].split()), "\n".join(text)))
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            while at < len(lines) and lines[at].startswith("    "):
                at += 1
            text = [line[4:] for line in lines[start:at]]
            found.append(Block(start + 1, (), "\n".join(text)))
        at += 1
    return found


def _prose(page: str) -> str:
    """The page without its code blocks."""
    kept, inside = [], False
    for line in page.splitlines():
        fence = line.startswith("```")
        if not (fence or inside or line.startswith("    ")):
            kept.append(line)
        inside = inside != fence
    return "\n".join(kept)


def commands(page: str) -> Iterator[str]:
    """Lines of shell blocks, and code in the running text; comments and prompts are cut off."""
    for block in blocks(page):
        if block.language in _SHELL:
            for line in block.text.replace("\\\n", " ").splitlines():
                yield line.strip().removeprefix("$ ")
    yield from (code.replace("\n", " ") for code in re.findall(r"`([^`]+)`", _prose(page)))


def _words(command: str, program: str) -> list[str] | None:
    """The arguments of ``program`` if the command calls it; variables before it are left out."""
    if program not in command:
        return None
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return None
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    return words[1:] if words and words[0].rpartition("/")[2] == program else None


def _parsing_problem(parse_args: Callable[[Sequence[str]], Any], words: list[str]) -> str | None:
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(io.StringIO()):
            parse_args(words)
    except SystemExit as end:
        if end.code:
            return complaint.getvalue().strip().splitlines()[-1]
    return None


def python_problems(page: str) -> list[str]:
    found = []
    for block in blocks(page):
        if block.language == "python":
            try:
                compile(block.text, f"line {block.line}", "exec")
            except SyntaxError as error:
                found.append(f"line {block.line}: {error}")
    return found


def dag_problems(page: str, folder: Path) -> list[str]:
    """Loads every block that makes a DAG as Airflow's DAG processor does."""
    from tests.operators.dag_bags import DagBag

    found = []
    for block in blocks(page):
        if block.language == "python" and re.search(r"\bDAG\(|^@dag\b", block.text, re.MULTILINE):
            path = folder / f"line_{block.line}.py"
            path.write_text(block.text)
            bag = DagBag(path)
            found += [f"line {block.line}: {error}" for error in bag.import_errors.values()]
            if not bag.import_errors and not any(dag.tasks for dag in bag.dags.values()):
                found.append(f"line {block.line}: no DAG with tasks")
    return found


def sql_problems(page: str) -> list[str]:
    """Statements that the planner can't parse, or that it can although the page denies it."""
    found = []
    for block in blocks(page):
        if block.language == "sql":
            text = _TEMPLATE.sub("1", block.text)
            try:
                sql = split_settings(text)[1]
                parse(sql)
                problem = why_unsupported(sql)
            except (PlanError, ValueError) as error:
                problem = str(error)
            if (_UNSUPPORTED in block.words) != bool(problem):
                found.append(f"line {block.line}: {problem or 'the planner parses it'}")
    return found


def command_problems(page: str) -> list[str]:
    """Calls of ``airflow-hive-opt`` that its parser rejects."""
    found = []
    for command in commands(page):
        words = _words(command, "airflow-hive-opt")
        if words and (problem := _parsing_problem(_parser().parse_args, words)):
            found.append(f"{command}: {problem}")
    return found


def airflow_problems(page: str) -> list[str]:
    """Calls of ``airflow`` that this Airflow's parser rejects."""
    from airflow.cli.cli_parser import get_parser

    found = []
    for command in commands(page):
        words = _words(command, "airflow")
        if words and (problem := _parsing_problem(get_parser().parse_args, words)):
            found.append(f"{command}: {problem}")
    return found


def make_problems(page: str) -> list[str]:
    makefile = (PROJECT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    (lakes,) = re.findall(r"^LAKES \?= (.*)", makefile, re.MULTILINE)
    targets |= {f"{verb}-{lake}" for verb in ("test", "fuzz", "bench") for lake in lakes.split()}
    found = []
    for command in commands(page):
        called = [word for word in _words(command, "make") or () if "=" not in word]
        found += [f"make {word}: no such target" for word in called if word not in targets]
    return found


def install_problems(page: str) -> list[str]:
    """Extras that pyproject.toml does not have."""
    project = (PROJECT / "pyproject.toml").read_text()
    extras = re.findall(r"^([\w-]+) = \[", project.split("optional-dependencies]")[1], re.M)
    named = re.findall(r"airflow-hive-opt\[([\w,-]+)\]", page)
    return [
        f"there is no extra {name}"
        for names in named
        for name in names.split(",")
        if name not in extras
    ]


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *#*$", _prose(page), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


def link_problems(page: str, path: Path) -> list[str]:
    """Relative links of the page at ``path`` to files or headings that do not exist."""
    found = []
    for link in _LINK.findall(_prose(page)):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            found.append(f"{link}: no such file")
        elif anchor and anchor not in anchors(page if not name else target.read_text()):
            found.append(f"{link}: no such heading")
    return found


@cache
def _texts_and_names() -> tuple[str, frozenset[str]]:
    """The text literals of the package, and the names that it defines or uses."""
    texts: list[str] = []
    names: set[str] = set()
    for path in sorted((PROJECT / "airflow_hive_opt").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, (ast.Name, ast.ClassDef)):
                names.add(node.id if isinstance(node, ast.Name) else node.name)
    return "\n".join(texts), frozenset(names)


def in_the_code(text: str) -> bool:
    """Whether the package has this text in one of its literals, or as a name."""
    texts, names = _texts_and_names()
    return text in texts or text in names
