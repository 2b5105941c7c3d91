"""The documentation site: its navigation, the files generated from all pages, and the whole site."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
yaml = pytest.importorskip("yaml", reason="no python3-yaml")


def pages_of_the_navigation():
    sections = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["nav"]
    return re.findall(r"[\w/]+\.md", json.dumps(sections))


def test_the_navigation_has_every_page():
    # docs/layers.md lists the pages of docs/layers, docs/design/README.md those of docs/design.
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md") if path.parent.name not in ("layers", "design")}
    named = pages_of_the_navigation()
    assert pages | {"README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"} <= set(named)
    assert len(named) == len(set(named)) and all((ROOT / page).exists() for page in named)


def pages_of_the_site():
    """The pages that docs/site/pages.py gives to MkDocs."""
    folders = [ROOT / name for name in ("docs", "models", "examples", "benchmarks", "src")]
    return [*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))]


def test_pages_are_in_the_navigation_or_left_out_by_name():
    left_out = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["not_in_nav"].split()
    forms = [re.compile(re.escape(form).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")) for form in left_out]
    named = set(pages_of_the_navigation())
    pages = {str(page.relative_to(ROOT)) for page in pages_of_the_site()}
    assert [page for page in sorted(pages - named) if not any(form.fullmatch(page) for form in forms)] == []


FENCED = re.compile(r"^```.*?^```$|<!--.*?-->", re.MULTILINE | re.DOTALL)


def anchors(page):
    """The anchors of its headings, as pymdownx's slugify makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading).lower()).strip().replace(" ", "-")
        found.add(slug if slug not in found else next(f"{slug}_{k}" for k in range(1, 99) if f"{slug}_{k}" not in found))
    return found


def broken_links(page):
    """Links to files or headings that do not exist; code is ignored."""
    text = re.sub(r"`[^`\n]*`", "", FENCED.sub("", page.read_text(encoding="utf-8")))
    for target, anchor in re.findall(r"\]\(([^)\s#]*)#?([^)\s]*)\)", text):
        if "://" in target:
            continue
        path = page.parent / target if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            yield f"{target}#{anchor}" if anchor else target


@pytest.mark.parametrize("page", pages_of_the_site(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Does not use MkDocs, which takes long to build the site (below)."""
    assert list(broken_links(page)) == []


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "b.md").write_text("# A `b`, c: [d](e.md)\n\n## A\n\n## A\n")
    page = tmp_path / "a.md"
    page.write_text("[1](b.md#a-b-c-d) [2](b.md#a_1) [3](https://x.y/z#q) `x[0](nothing.md)`\n```\n[4](none.md)\n```\n"
                    "[5](b.md#e) [6](c.md) [7](#z)")
    assert list(broken_links(page)) == ["b.md#e", "c.md", "#z"]


@pytest.mark.parametrize("page", pages_of_the_navigation())
def test_lists_begin_after_an_empty_line(page):
    """Otherwise the site shows them as part of the paragraph."""
    item, fenced, before = re.compile(r"([*-]|\d+\.) "), False, ""
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        fenced ^= line.startswith("```")
        starts = item.match(line) and before and not (item.match(before) or before.startswith("  "))
        assert fenced or not starts, f"{page}:{number}: a list without an empty line before it"
        before = line


def docs_all(root, *arguments):
    return subprocess.run([sys.executable, root / "scripts" / "docs_all.py", *arguments], text=True, capture_output=True,
                          check=False)


def test_the_list_of_pages_is_up_to_date():
    done = docs_all(ROOT, "--check")
    assert done.returncode == 0, done.stderr


@pytest.fixture(name="copy")
def copy_of_the_pages(tmp_path):
    for page in [*pages_of_the_navigation(), "mkdocs.yml", "scripts/docs_all.py"]:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / page, tmp_path / page)
    assert docs_all(tmp_path).returncode == 0
    return tmp_path


def test_a_changed_title_makes_it_stale(copy):
    assert docs_all(copy, "--check").returncode == 0
    page = copy / "docs" / "data.md"
    page.write_text(page.read_text().replace("# ", "# More ", 1))
    assert "llms.txt is out of date" in docs_all(copy, "--check").stderr


def test_links_of_pages_hold_where_all_are(copy):
    (copy / "docs" / "neighbours" / "netron.md").write_text(
        "# Netron\n\nSee [runs](../runs.md#curves), [here](#netron), ![x](../images/x.svg), [web](https://netron.app).\n\n"
        "```python\nf = x[0](a.md)\n```\n<!-- before the blocks:\nx = 1\n-->\n")
    assert docs_all(copy, "--all", copy / "all.md").returncode == 0
    text = (copy / "all.md").read_text()
    assert ("See [runs](runs.md#curves), [here](neighbours/netron.md#netron), ![x](images/x.svg), [web](https://netron.app).\n\n"
            "```python\nf = x[0](a.md)\n```\n\n<!-- docs") in text


def test_the_list_has_the_form_of_llmstxt():
    title, *lines = [line for line in (ROOT / "llms.txt").read_text().splitlines() if line]
    assert title == "# Cortado" and lines[0].startswith("> ")
    assert "All pages in one file, on the site: docs/all.md" in lines
    links = [line for line in lines if line.startswith("- ")]
    assert len(links) == len(pages_of_the_navigation())
    for line in links:
        assert (ROOT / re.fullmatch(r"- \[[^]]+\]\(([\w/.]+)\): \S.*", line)[1]).exists(), line


def test_pictures_are_small_and_in_a_page():
    pictures = [path for path in (ROOT / "docs" / "images").iterdir() if path.suffix in (".svg", ".png")]
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in pages_of_the_navigation())
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 200_000 and f"images/{picture.name})" in text, picture.name


def build_site(root, *arguments):
    if not os.environ.get("CAFFE_SLOW_TESTS"):
        pytest.skip("slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")
    done = subprocess.run([root / "scripts" / "docs_site.sh", *arguments], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def test_the_site_builds():
    if not shutil.which("doxygen"):
        pytest.skip("no doxygen: scripts/install_dependencies.sh docs")
    status, output = build_site(ROOT)
    assert status == 0 and not re.search("warn", output, re.IGNORECASE), output
    site = ROOT / "build" / "site"
    assert "lenet" in (site / "search" / "search_index.json").read_text().lower()
    assert "class" in (site / "api" / "cpp" / "classcaffe_1_1Net.html").read_text()
    python = (site / "api" / "python" / "caffe.html").read_text()
    assert 'id="Net.forward"' in python and '<span class="n">unknown</span>' not in python
    assert "unpkg.com" not in (site / "index.html").read_text()  # nothing is fetched from other sites
    home = (site / "index.html").read_text()
    for link in ("api/cpp/index.html", "api/python/caffe.html", "docs/neighbours/slurm.html", "CHANGELOG.html"):
        assert f'href="{link}"' in home and (site / link).exists(), link
    assert (site / "llms.txt").exists() and (site / "docs" / "all.md").exists()


@pytest.mark.parametrize("link", ["nothing.md", "runs.md#nothing", "../models/nothing/README.md"])
def test_a_broken_link_is_a_failure(tmp_path, link):
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("build", ".git", "tests", "*_lmdb"))
    (ROOT / "build" / "docs-venv").mkdir(parents=True, exist_ok=True)  # may be missing if the site was never built
    (copy / "build").mkdir()
    (copy / "build" / "docs-venv").symlink_to(ROOT / "build" / "docs-venv")
    with open(copy / "docs" / "data.md", "a", encoding="utf-8") as page:
        page.write(f"\n[broken]({link})\n")
    status, output = build_site(copy, "--no-api")
    assert status != 0 and link in output, output
