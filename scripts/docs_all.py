#!/usr/bin/env python3
"""Writes llms.txt, a list of the pages (llmstxt.org), or all pages in one file.

  scripts/docs_all.py [--check | --all FILE]

  --check     changes nothing and fails if llms.txt is out of date
  --all FILE  writes all pages to FILE, like docs/all.md on the site

Pages and their order are those of the site (nav in mkdocs.yml). A page's description comes from the
tables in README.md and docs/README.md, else it is the page's first sentence. Needs PyYAML.
"""
import argparse
import os
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALL = ROOT / "docs" / "all.md"  # on the site
LIST = ROOT / "llms.txt"
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
HEAD = """<!-- Made by scripts/docs_all.py from the pages that mkdocs.yml names. -->

"""


def sections():
    """(title, [page]) of the site's navigation."""
    # The base loader treats the file's Python tags as plain text.
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)["nav"]
    for section in nav:
        for title, entries in section.items():
            paths = [entry if isinstance(entry, str) else next(iter(entry.values())) for entry in entries]
            yield title, [ROOT / path for path in paths]


def paragraphs(page):
    """Paragraphs of a page, without code, comments, headings, tables, pictures and lists."""
    text = FENCED.sub("", COMMENT.sub("", page.read_text(encoding="utf-8")))
    parts = [part for part in re.split(r"\n\s*\n", text) if re.match(r"[\w`*]", part) and not part.startswith("* ")]
    return [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(part.split())) for part in parts]


def title(page):
    return re.search(r"^# (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)[1].replace("`", "")


def descriptions():
    """Descriptions of pages, from the tables of README.md and docs/README.md that link to them."""
    found = {}
    for page in (ROOT / "README.md", ROOT / "docs" / "README.md"):
        for links, text in re.findall(r"^\| (\[.*?) \| (.*) \|$", page.read_text(encoding="utf-8"), re.MULTILINE):
            found.update({(page.parent / link[1]).resolve(): text for link in LINK.finditer(links)})
    return found


def first_sentence(page):
    return re.match(r".*?[.:](?=\s|$)|.*", paragraphs(page)[0].replace("**", ""))[0].rstrip(".:")


def relinked(page, folder):
    """A page's text with links adjusted to another folder."""
    def target(link):
        path = os.path.relpath(page.parent / link[1] if link[1] else page, folder)
        return f"]({path}{link[2] or ''})"

    parts = FENCED.split(COMMENT.sub("", page.read_text(encoding="utf-8")))
    return "".join(part if part.startswith("```") else LINK.sub(target, part) for part in parts)


def all_pages():
    pages = [page for _, pages in sections() for page in pages]
    return HEAD + "\n".join(f"<!-- {page.relative_to(ROOT)} -->\n\n{relinked(page, ALL.parent)}" for page in pages)


def page_list():
    home = ROOT / "README.md"
    text = f"# {title(home)}\n\n> {paragraphs(home)[0]}\n"
    text += f"\nAll pages in one file, on the site: {ALL.relative_to(ROOT)}\n"
    known = descriptions()
    for name, pages in sections():
        lines = (f"- [{title(page)}]({page.relative_to(ROOT)}): {known.get(page) or first_sentence(page)}\n" for page in pages)
        text += f"\n## {name}\n\n" + "".join(lines)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--all", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    if options.all:
        options.all.write_text(all_pages(), encoding="utf-8")
    elif not options.check:
        LIST.write_text(page_list(), encoding="utf-8")
    elif not LIST.exists() or LIST.read_text(encoding="utf-8") != page_list():
        sys.exit(f"{LIST.relative_to(ROOT)} is out of date; run scripts/docs_all.py")


if __name__ == "__main__":
    main()
