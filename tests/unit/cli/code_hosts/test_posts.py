"""One comment and one issue, found again by marker and author, on a stand-in for both forges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from reconciler.cli.code_hosts.api import CodeHost
from reconciler.cli.code_hosts.client import CodeHostError
from reconciler.cli.code_hosts.github import connect_github
from reconciler.cli.code_hosts.gitlab import connect_gitlab
from reconciler.cli.code_hosts.http import RetryPolicy
from reconciler.cli.code_hosts.posts import close_issue, find_marker, post_comment, post_issue
from reconciler.cli.code_hosts.target import TargetOptions, find_target
from reconciler.errors import UsageError
from tests.code_host_server import CodeHostServer

MARKER = "<!-- reconciler:plan:prod -->"
BODY = f"{MARKER}\n### plan\n"


@dataclass
class Side:
    """One forge, and who we are there."""

    forge: CodeHost
    me: str


@pytest.fixture
def server(monkeypatch) -> Iterator[CodeHostServer]:
    monkeypatch.setenv("no_proxy", "*")
    with CodeHostServer() as standing:
        yield standing


def connected(server: CodeHostServer, name: str, **environ: str) -> CodeHost:
    found = server.github_environment() if name == "github" else server.gitlab_environment()
    where = find_target(found | environ, TargetOptions(), read=_no_file)
    patience = RetryPolicy(sleep=lambda _: None, timeout=5)
    return connect_github(where, patience) if name == "github" else connect_gitlab(where, patience)


def _no_file(path: str) -> bytes:
    raise FileNotFoundError(path)


@pytest.fixture(params=["github", "gitlab"])
def side(request, server) -> Side:
    me = {"github": "github-actions[bot]", "gitlab": "project_7_bot"}[request.param]
    return Side(connected(server, request.param), me)


def post(side: Side, body: str = BODY) -> str:
    return post_comment(side.forge, 5, body, "plan.md").status


def test_the_first_plan_makes_the_comment_and_the_next_edits_it(server, side):
    assert "created" == post(side)
    assert "unchanged" == post(side)
    assert "edited" == post(side, f"{BODY}more\n")
    assert [f"{BODY}more\n"] == [note.body for note in server.comments]
    assert [side.me] == [note.author for note in server.comments]


def test_what_a_forge_does_to_line_ends_is_no_difference(server, side):
    post(side)
    server.comments[0].body = BODY.replace("\n", "\r\n").rstrip()

    assert "unchanged" == post(side)


def test_a_comment_of_somebody_else_is_left_alone_whatever_it_begins_with(server, side):
    theirs = server.add(server.comments, "mallory", f"{MARKER}\nall is well")
    ghost = server.add(server.comments, "", f"{MARKER}\nall is well")

    assert "created" == post(side)
    assert "edited" == post(side, f"{BODY}more")
    assert [f"{MARKER}\nall is well"] * 2 == [theirs.body, ghost.body]
    assert 3 == len(server.comments)


@pytest.mark.parametrize(
    "body",
    [
        f"I saw {MARKER}",
        f"\n{MARKER}\n",
        "<!-- reconciler:plan:prod2 -->\n",
        "<!-- reconciler:apply:prod -->\n",
        f"{MARKER} and more",
    ],
)
def test_a_comment_of_ours_counts_only_by_its_very_marker_at_its_start(server, side, body):
    other = server.add(server.comments, side.me, body)

    assert "created" == post(side)
    assert body == other.body


def test_a_comment_is_found_on_a_later_page(server, side):
    server.page_size = 2
    for number in range(7):
        server.add(server.comments, "ann", f"remark {number}")
    server.add(server.comments, side.me, f"{MARKER}\nold")

    assert "edited" == post(side)
    assert BODY.strip() == server.comments[-1].body.strip()


def test_a_word_of_the_system_is_no_comment(server):
    note = server.add(server.comments, "project_7_bot", f"{MARKER}\nold", is_system=True)

    assert "created" == post(Side(connected(server, "gitlab"), ""))
    assert f"{MARKER}\nold" == note.body


def test_of_two_that_ran_at_once_the_older_comment_stays(server, side):
    first = server.add([], side.me, f"{MARKER}\nthe other run's")
    server.meanwhile.append(first)
    done = post_comment(side.forge, 5, BODY, "plan.md")

    assert [first] == server.comments
    assert BODY == first.body
    assert "edited" == done.status
    assert 1 == len(done.removed_urls)


def test_duplicates_of_before_are_removed_and_told(server, side):
    notes = [server.add(server.comments, side.me, BODY) for _ in range(3)]
    done = post_comment(side.forge, 5, BODY, "plan.md")

    assert notes[:1] == server.comments
    assert ("unchanged", 2) == (done.status, len(done.removed_urls))


def test_an_answer_that_is_lost_makes_no_second_comment(server, side):
    server.failures.append(("POST", 502, {}))
    server.loses_answers = True
    if side.me == "github-actions[bot]":
        side.forge.current_account()  # asks by POST too

    before = len(server.asked)

    assert "created" == post(side)
    assert 1 == len(server.comments)
    assert 1 == sum(method == "POST" for method, _ in server.asked[before:])


def test_a_comment_that_did_not_arrive_is_posted_again(server, side):
    side.forge.current_account()
    server.failures.append(("POST", 502, {}))

    assert "created" == post(side)
    assert 1 == len(server.comments)


def test_a_forge_that_stays_broken_is_an_error(server, side):
    server.failures += [("POST", 502, {})] * 9

    with pytest.raises(CodeHostError, match=r"answered 502: it is broken"):
        post(side)


def test_reading_and_editing_are_tried_again(server, side):
    post(side)
    server.failures += [("GET", 503, {}), ("PATCH", 500, {}), ("PUT", 429, {"Retry-After": "1"})]

    assert "edited" == post(side, f"{BODY}more")


# --- issues --------------------------------------------------------------------------------------


def issue(side: Side, body: str = BODY, title: str = "Drift in prod") -> str:
    return post_issue(side.forge, title, body, "plan.md").status


def test_one_issue_is_opened_edited_and_closed(server, side):
    assert "created" == issue(side)
    assert "unchanged" == issue(side)
    assert "edited" == issue(side, f"{BODY}more")
    assert "edited" == issue(side, f"{BODY}more", "Drift")
    (found,) = server.issues
    assert ("Drift", f"{BODY}more", ("reconciler",)) == (found.title, found.body, found.labels)

    assert "closed" == close_issue(side.forge, BODY, "All is well.", "plan.md").status
    assert (["All is well."], False) == (found.remarks, found.is_open)
    assert "absent" == close_issue(side.forge, BODY, "All is well.", "plan.md").status
    assert ["All is well."] == found.remarks


def test_a_closed_issue_stays_closed_and_new_drift_opens_another(server, side):
    issue(side)
    close_issue(side.forge, BODY, "All is well.", "plan.md")

    assert "created" == issue(side)
    assert [False, True] == [note.is_open for note in server.issues]


def test_issues_of_others_and_pull_requests_are_left_alone(server, side):
    label = {"labels": ("reconciler",)}
    theirs = server.add(server.issues, "mallory", BODY, title="mine", **label)
    pull = {"is_pull_request": True} if side.me == "github-actions[bot]" else {"is_open": False}
    server.add(server.issues, side.me, BODY, title="a pull request", **pull, **label)

    assert "created" == issue(side)
    close_issue(side.forge, BODY, "All is well.", "plan.md")
    assert (True, "mine") == (theirs.is_open, theirs.title)


def test_of_two_issues_the_older_one_stays_open(server, side):
    first = server.add([], side.me, BODY, title="Drift in prod", labels=("reconciler",))
    server.meanwhile.append(first)
    done = post_issue(side.forge, "Drift in prod", BODY, "plan.md")
    second = server.issues[1]

    assert (True, False) == (first.is_open, second.is_open)
    assert [f"Duplicate of #{first.number}."] == second.remarks
    assert 1 == len(done.removed_urls)


# --- who we are ----------------------------------------------------------------------------------


def test_a_person_is_who_their_token_says(server):
    assert "ann" == connected(server, "github", GITHUB_TOKEN="person-token").current_account()
    job = {"RECONCILER_GITLAB_TOKEN": "", "CI_JOB_TOKEN": "job-token"}
    assert "ann" == connected(server, "gitlab", **job).current_account()


def test_a_workflow_is_who_the_graph_says_or_who_workflows_are(server):
    server.graph_answers = False

    assert "github-actions[bot]" == connected(server, "github").current_account()


def test_another_app_that_the_graph_does_not_know_is_nobody(server):
    server.graph_answers = False
    forge = connected(server, "github", GITHUB_ACTIONS="")

    with pytest.raises(CodeHostError, match="answered 403: no graph for you"):
        forge.current_account()


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_pull_request_of_a_commit_is_the_one_merged(server, name):
    forge = connected(server, name)

    assert 5 == forge.find_pull_request("abcdef1234")
    assert forge.find_pull_request("0000000") is None


def test_a_job_token_of_gitlab_is_told_what_it_may_not(server):
    environ = {"RECONCILER_GITLAB_TOKEN": "", "CI_JOB_TOKEN": "job-token"}
    forge = connected(server, "gitlab", **environ)

    with pytest.raises(CodeHostError, match=r"a job token cannot write .* RECONCILER_GITLAB"):
        post_comment(forge, 5, BODY, "plan.md")


# --- what never gets out -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["github", "gitlab"])
@pytest.mark.parametrize("token", ["s3cr3t", "s3cr3t with a blank", "s3cr3t\ninjected: 1"])
def test_the_token_is_in_no_error(server, name, token):
    variable = {"github": "GITHUB_TOKEN", "gitlab": "RECONCILER_GITLAB_TOKEN"}[name]
    forge = connected(server, name, **{variable: token})

    with pytest.raises(CodeHostError) as caught:
        post_comment(forge, 5, BODY, "plan.md")

    assert "s3cr3t" not in str(caught.value) + repr(forge)
    assert (
        "*** " in str(caught.value) or "***;" in str(caught.value) or " " in token or "\n" in token
    )


def test_a_repository_that_has_moved_is_said_to_have(server):
    server.failures.append(("GET", 301, {"Location": f"{server.url}/elsewhere"}))

    with pytest.raises(
        CodeHostError, match=r"answered 301; .*: give its new name with --repository"
    ):
        post(Side(connected(server, "github"), ""))


def test_a_redirect_is_not_followed(server, side):
    with CodeHostServer() as elsewhere:
        where = {"Location": f"{elsewhere.url}/api/v3/user"}
        server.failures += [("GET", 302, where)]

        with pytest.raises(CodeHostError, match="answered 302; redirects are not followed"):
            post(side)

        assert [] == elsewhere.asked


@pytest.mark.parametrize(
    "link", ["https://evil.example/x", "//evil.example/x", "http://127.0.0.1:1/x", "nonsense"]
)
def test_a_next_page_elsewhere_is_not_asked(server, link, monkeypatch):
    from tests import code_host_server as standing  # noqa: PLC0415

    headers = {"Link": f'<{link}>; rel="next"'}
    monkeypatch.setattr(standing.Handler, "_page", lambda *_: (200, [], headers))

    with pytest.raises(CodeHostError, match="points to another host"):
        post(Side(connected(server, "github"), ""))


# --- what may be posted --------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["", "### plan", "<!-- other -->\n", f" {MARKER}\n", "<!--"])
def test_a_text_without_a_marker_is_not_posted(body):
    with pytest.raises(UsageError, match=r"^plan\.md: does not begin with a marker"):
        find_marker(body, "plan.md")


def test_a_text_too_long_for_the_forge_is_not_posted(server):
    forge = connected(server, "github")
    rainbow = f"{MARKER}\n" + chr(0x1F308) * 33_000

    with pytest.raises(
        UsageError, match=r"^plan\.md: has 66030 characters, but a post holds 65536$"
    ):
        post_comment(forge, 5, rainbow, "plan.md")


def test_no_line_is_a_command_to_gitlab(server):
    side = Side(connected(server, "gitlab"), "")
    body = f"{MARKER}\n/merge\n```\n/close\n```\n"

    assert "created" == post(side, body)
    assert f"{MARKER}\n /merge\n```\n /close\n```\n" == server.comments[0].body
    assert "unchanged" == post(side, body)


@pytest.mark.parametrize("answer", [(200, {"login": 7}), (200, []), (200, "x")])
def test_an_answer_that_makes_no_sense_is_an_error(server, answer: Callable, monkeypatch):
    from tests import code_host_server as standing  # noqa: PLC0415

    monkeypatch.setattr(standing.Handler, "_find_answer", lambda *_: answer)

    with pytest.raises(CodeHostError, match=r"^GitHub: "):
        post(Side(connected(server, "github"), ""))


@pytest.mark.parametrize("answer", [(500, {}), (500, {"message": None}), (500, {"error": []})])
def test_a_refusal_without_a_message_ends_with_its_status(server, answer: Callable, monkeypatch):
    from tests import code_host_server as standing  # noqa: PLC0415

    monkeypatch.setattr(standing.Handler, "_find_answer", lambda *_: answer)

    with pytest.raises(CodeHostError, match="answered 500") as caught:
        post(Side(connected(server, "github"), ""))

    assert '""' not in str(caught.value)
