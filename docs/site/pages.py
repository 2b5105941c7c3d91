"""MkDocs hook: the site mirrors the repository, so that a page's links hold in both.

Links that show a page's file name show its title instead. Pages are the Markdown files of the repository under their own paths. What they link to (notebooks,
pictures, the licence) and the API references of scripts/docs_site.sh are copied. The Markdown files
stand next to the pages, where llms.txt points, and docs/all.md has all of them.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "models", "examples", "benchmarks", "src")
LINK = re.compile(r"\]\(([^)\s#]+)")
# The words in a fence after its language are for tests/smoke/test_code_blocks.py; a file name is shown.
# A link whose text is the file's name.
NAMED = re.compile(r"\[`?[\w/.]+\.md`?\]\((?!\w+:)([^)#\s]+\.md)(#[^)\s]*)?\)")
STYLE = "docs/site/style.css"
FENCE = re.compile(r"^```(\w+) +(\S+)$", re.MULTILINE)
API = {"Python": "api/python/caffe.html", "C++": "api/cpp/index.html"}


def sources():
    """The pages' files."""
    found = [*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md"))]
    return sorted(found)


def linked_files(page):
    """Files of the repository, other than pages, that a page links to."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    paths = {(page.parent / target).resolve() for target in targets if "://" not in target}
    return {path for path in paths if path.is_file() and path.suffix != ".md"}


def on_files(files, config):
    mirror = Files([file for file in files if file.generated_by or file.src_dir != config.docs_dir])
    pages = sources()
    for path in [*pages, ROOT / STYLE, *sorted(set().union(*map(linked_files, pages)))]:
        mirror.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return mirror


def title_of(page):
    heading = re.search(r"^# (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return heading[1] if heading else page.name


def on_page_markdown(markdown, page, **_):
    folder = (ROOT / page.file.src_uri).parent
    markdown = NAMED.sub(lambda link: f"[{title_of(folder / link[1])}]({link[1]}{link[2] or ''})", markdown)
    return FENCE.sub(lambda fence: f"```{fence[1]}" + (f' title="{fence[2]}"' if "." in fence[2] else ""), markdown)


def on_nav(nav, **_):
    """Adds the API references, which are not pages, to their sections, if scripts/docs_site.sh has made them."""
    for section in nav.items:
        if section.title in API and os.environ.get("SITE_HAS_API"):
            section.children.append(Link("API reference", API[section.title]))
    return nav


def on_post_build(config, **_):
    for path in [*sources(), ROOT / "llms.txt"]:
        copy = pathlib.Path(config.site_dir, path.relative_to(ROOT))
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    subprocess.run([sys.executable, ROOT / "scripts" / "docs_all.py", "--all", pathlib.Path(config.site_dir, "docs", "all.md")],
                   check=True)
