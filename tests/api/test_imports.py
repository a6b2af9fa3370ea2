"""Other tools' files through the API and the command line: read, shown, and what they have stored on request."""

import json
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner, Result

from app.cli import app
from tests.api.service import Json, Service, pointers
from tests.unit.importers.samples import FILES, WRITTEN, json_lines

PATH = "/v1/imports"
WITH = {"judges": ["simulated/sim-judge"]}
GYM = {"reasoner": "simulated/sim-reasoner"}
"""What no file of another tool names."""
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "importing.md"
BINARY = "application/octet-stream"
TRAITS = ["A=high", "N=low"]
"""Traits that the files of verdicts judge."""
EVERY = [(kind, name) for kind, files in FILES.items() for name in files]


def read(api: Service, data: bytes, **query: str | list[str]) -> httpx2.Response:
    return api.http.post(PATH, content=data, params=query, headers={"content-type": BINARY})


def assay(service: Service, *arguments: str | Path) -> Result:
    url = str(service.http.base_url).rstrip("/")
    return CliRunner().invoke(app, ["import", *map(str, arguments)], env={"ASSAY_URL": url})


def planned(api: Service, body: Json) -> Json:
    answer = api.post("/v1/jobs/plan", WITH | body)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


@pytest.mark.usefixtures("nothing_created")
@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_file_is_read_and_what_it_gives_can_be_sent(api: Service, kind: str, name: str) -> None:
    traits = TRAITS if name.startswith("verdicts") else ["E=high"]
    own = {"persona": "a bold person"} if kind in {"deepeval", "sillytavern"} else {}
    answer = read(api, FILES[kind][name], name=name, trait=traits, **own)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["kind"], found["refused"]) == (kind, 0)
    if found["job"] is not None:
        more = GYM if any("question" in each for each in found["job"]["responses"]) else {}
        assert planned(api, found["job"] | more)["responses"] == found["mapped"]
    if found["persona_set"] is not None:
        kept = api.post("/v1/persona-sets", found["persona_set"])
        assert kept.status_code == 201, kept.text
    if found["question_set"] is not None:
        assert api.post("/v1/question-sets", found["question_set"]).status_code == 201


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_what_every_file_gives_with_a_built_in_persona_can_be_submitted(
    stack: Service, kind: str, name: str
) -> None:
    has_scores = name.startswith(("verdicts", "atomic_scores"))
    traits = TRAITS if name.startswith("verdicts") else ["E=high"]
    chosen: dict[str, str | list[str]] = {"trait": traits} if has_scores else {"persona": "E-high"}
    found = read(stack, FILES[kind][name], name=name, **chosen).json()
    sets = [each for each in ("persona_set", "question_set") if found[each] is not None]
    assert found["job"] or sets
    for each in sets:
        answer = stack.post(f"/v1/{each.replace('_', '-')}s", found[each])
        assert answer.status_code == 201, answer.text
    if found["job"] is None:
        return
    assert has_scores or found["job"]["personas"] == ["E-high"]
    more = GYM if any("question" in each for each in found["job"]["responses"]) else {}
    answer = stack.post("/v1/jobs", WITH | found["job"] | more)
    assert answer.status_code == 202, answer.text
    stack.wait(answer.json()["id"], "completed")


@pytest.mark.parametrize("path", sorted(WRITTEN.glob("*[!d]")), ids=lambda path: path.name)
def test_a_job_on_every_file_that_a_tool_wrote_can_be_submitted(stack: Service, path: Path) -> None:
    found = read(stack, path.read_bytes(), name=path.name, persona="E-high").json()
    answer = stack.post("/v1/jobs", WITH | found["job"])
    assert answer.status_code == 202, answer.text
    stack.wait(answer.json()["id"], "completed")


@pytest.mark.usefixtures("nothing_created")
@pytest.mark.parametrize(
    ("data", "query", "pointer", "words"),
    [
        (b"", {}, "", "empty"),
        (b"hello", {}, "", "neither JSON nor JSON Lines"),
        (b"\xff\x00\x01", {}, "/lines/1", "not UTF-8"),
        (b'{"a": 1}', {}, "", "not a kind of file that is known"),
        (
            b"bot_reply,user_id\nI danced.,7\n",
            {},
            "",
            "columns: bot_reply, user_id. Its first rows: I danced. | 7",
        ),
        (b"PAR1", {}, "", "not a Parquet file"),
        (b"[" * 100_000, {}, "", "nested too deeply"),
        (b"{}", {"kind": "word"}, "/query/kind", "unknown kind"),
        (b"{}", {"trait": "E"}, "/query/trait/0", "name=value"),
        (b"{}", {"trait": ["E=high", "E=low"]}, "/query/trait", "twice"),
        (b"{}", {"column": "text"}, "/query/column/0", "name=value"),
        (b"{}", {"column": "words=a"}, "/query/column", "words"),
        (b"{}", {"persona": " "}, "/query/persona", ""),
        (b"{}", {"persona": "E-hihg"}, "/query/persona", "did you mean 'E-high'?"),
        (b"{}", {"task": "essais"}, "/query/task", "did you mean 'essay'?"),
        (b"{}", {"trait": "Z=high"}, "/query/trait/0", "unknown dimension"),
        (b"{}", {"trait": "E=loud"}, "/query/trait/0", "low, neutral, high"),
        (b"{}", {"colour": "red"}, "/query/colour", ""),
        (b"{}", {"scale": "10"}, "/query/scale", "such as 0-10"),
        (b"{}", {"questions": "qset_0"}, "/query/questions", "no question set"),
        (b'{"persona": "p", "response": "x", "rating": 9}', {"score": "rating"}, "/query/scale", "9 to 9"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    api: Service, data: bytes, query: dict[str, str | list[str]], pointer: str, words: str
) -> None:
    answer = read(api, data, **query)
    assert answer.status_code == 422, answer.text
    assert pointers(answer) == [pointer]
    assert words in answer.json()["errors"][0]["message"]


class TestCommand:
    def test_shows_what_is_found_and_stores_nothing(self, api: Service, tmp_path: Path) -> None:
        file = tmp_path / "chat.jsonl"
        file.write_bytes(FILES["openai_messages"]["chat.jsonl"] + b"5\n")
        result = assay(api, file)
        assert result.exit_code == 0, result.output
        for words in ("openai_messages", "4 found, 3 imported, 1 refused", "/lines/3", "must be an object"):
            assert words in result.output
        for words in (
            "2 different prompts (from the user's message",
            "3 texts (from the assistant's messages)",
        ):
            assert words in result.output
        assert set(api.rows().values()) == {0}

    def test_writes_the_job_of_several_files(self, api: Service, tmp_path: Path) -> None:
        files = [tmp_path / "chat.jsonl", tmp_path / "log.json"]
        files[0].write_bytes(FILES["openai_messages"]["chat.jsonl"])
        files[1].write_bytes(FILES["sharegpt"]["log.json"])
        out = tmp_path / "job.json"
        chosen = ("--trait", "E=high", "--judge", "simulated/sim-judge", "-o", out)
        assert assay(api, *files, *chosen).exit_code == 0
        job = json.loads(out.read_text("utf-8"))
        assert (len(job["personas"]), len(job["responses"]), job["judges"]) == (1, 5, ["simulated/sim-judge"])
        assert planned(api, job)["responses"] == 5

    def test_stores_personas(self, api: Service, tmp_path: Path) -> None:
        file = tmp_path / "card.png"
        file.write_bytes(FILES["character_card"]["card.png"])
        result = assay(api, file, "--submit", "--name", "Ada's card")
        assert result.exit_code == 0, result.output
        (id_,) = (line for line in result.output.splitlines() if line.startswith("pset_"))
        kept = api.get(f"/v1/persona-sets/{id_}").json()
        assert (kept["name"], kept["personas"][0]["description"][:3]) == ("Ada's card", "Ada")

    def test_what_is_found_and_stored_is_one_json_document(self, api: Service, tmp_path: Path) -> None:
        file = tmp_path / "card.png"
        file.write_bytes(FILES["character_card"]["card.png"])
        told = json.loads(assay(api, file, "--submit", "--json").stdout)
        assert told["files"][0]["kind"] == "character_card"
        assert api.get(f"/v1/persona-sets/{told['stored']['persona_set']}").status_code == 200

    def test_a_file_with_nothing_is_an_error(self, api: Service, tmp_path: Path) -> None:
        file = tmp_path / "chat.jsonl"
        file.write_text('{"messages": []}\n{"messages": []}\n')
        result = assay(api, file, "--submit")
        assert result.exit_code == 3
        assert "no message of the assistant" in result.output

    def test_a_tools_score_is_a_verdict_if_it_is_chosen(self, stack: Service, tmp_path: Path) -> None:
        file = tmp_path / "rows.csv"
        file.write_text("persona,response,rating\na clown,Ha.,5\na clown,Oh. No.,2\n", "utf-8")
        result = assay(stack, file, "--trait", "E=high", "--score", "rating", "--submit")
        assert result.exit_code == 0, result.output
        (id_,) = (line for line in result.output.splitlines() if line.startswith("job_"))
        stack.wait(id_, "completed")
        responses = stack.get(f"/v1/jobs/{id_}/responses").json()["data"]
        found = {
            each["text"]: [v["score"] for u in each["units"] for v in u["verdicts"]] for each in responses
        }
        assert found == {"Ha.": [5], "Oh. No.": [2]}

    def test_a_tools_score_is_the_grade_of_an_answer_to_personagyms_question(
        self, stack: Service, tmp_path: Path
    ) -> None:
        file = tmp_path / "rows.csv"
        file.write_text("persona,question,response,rating\na clown,Who?,I.,5\na clown,Why?,So.,\n", "utf-8")
        chosen = ("--task", "persona_consistency", "--score", "rating")
        result = assay(stack, file, *chosen, "--submit")
        assert result.exit_code == 0, result.output
        (id_,) = (line for line in result.output.splitlines() if line.startswith("job_"))
        ended = stack.wait(id_, "completed_with_errors", "completed")
        assert ended["progress"]["judging"]["succeeded"] == 1, "the other is missing"
        responses = stack.get(f"/v1/jobs/{id_}/responses").json()["data"]
        assert {each["text"]: [g["score"] for g in each["grades"]] for each in responses} == {
            "I.": [5],
            "So.": [None],
        }

    def test_a_tools_scale_is_told_and_kept_with_the_job(self, stack: Service, tmp_path: Path) -> None:
        file = tmp_path / "rows.csv"
        file.write_text("persona,response,rating\na clown,Ha.,9\na clown,Oh. No.,0\n", "utf-8")
        chosen = ("--trait", "E=high", "--score", "rating", "--submit")
        refused = assay(stack, file, *chosen)
        assert refused.exit_code != 0
        assert "go from 0 to 9" in refused.output
        result = assay(stack, file, *chosen, "--scale", "0-10")
        assert result.exit_code == 0, result.output
        (id_,) = (line for line in result.output.splitlines() if line.startswith("job_"))
        job = stack.wait(id_, "completed")
        responses = stack.get(f"/v1/jobs/{id_}/responses").json()["data"]
        found = {
            each["text"]: [v["score"] for u in each["units"] for v in u["verdicts"]] for each in responses
        }
        assert found == {"Ha.": [5], "Oh. No.": [1]}, "of 0, 2.5, 5, 7.5 and 10, 10 is nearest to 9"
        assert "0 to 10, as the nearest of" in job["spec"]["judges"][0]["provenance"]["note"]

    def test_prompts_of_a_question_set_tell_the_task(self, api: Service, tmp_path: Path) -> None:
        content = {"a clown": {"expected_action": ["A storm comes. What do you do?"]}}
        set_ = api.post("/v1/question-sets", {"questions": content}).json()["id"]
        file = tmp_path / "rows.jsonl"
        file.write_text('{"prompt": "A storm comes.  What do you do?", "response": "I laugh."}\n', "utf-8")
        out = tmp_path / "job.json"
        result = assay(api, file, "--questions", set_, "-o", out)
        assert result.exit_code == 0, result.output
        (response,) = json.loads(out.read_text("utf-8"))["responses"]
        assert (response["task"], response["question"]) == (
            "expected_action",
            "A storm comes. What do you do?",
        )

    def test_a_built_in_personas_id_is_that_persona(self, stack: Service, tmp_path: Path) -> None:
        rows = (
            {"persona": "E-high", "response": "I danced."},
            {"persona": "E-high", "response": "I slept."},
        )
        (tmp_path / "rows.jsonl").write_bytes(json_lines(*rows))
        result = assay(stack, tmp_path / "rows.jsonl", "--judge", "simulated/sim-judge", "--submit")
        assert result.exit_code == 0, result.output
        (id_,) = (line for line in result.output.splitlines() if line.startswith("job_"))
        stack.wait(id_, "completed")
        (cell,) = stack.get(f"/v1/jobs/{id_}/results").json()["cells"]
        assert (cell["persona"], cell["dimension"], cell["level"]) == ("E-high", "E", "high")

    def test_a_built_in_persona_with_other_traits_is_the_jobs_own(self, api: Service) -> None:
        found = read(api, b'{"response": "I danced."}\n' * 2, persona="E-high", trait=["A=low"]).json()
        (persona,) = found["job"]["personas"]
        assert (persona["traits"], persona["id"] != "E-high") == ({"A": "low"}, True)
        assert planned(api, found["job"])["responses"] == 2

    def test_submits_a_job_that_is_judged(self, stack: Service, tmp_path: Path) -> None:
        file = tmp_path / "rows.jsonl"
        file.write_bytes(FILES["table"]["rows.jsonl"])
        result = assay(stack, file, "--trait", "E=low", "--judge", "simulated/sim-judge", "--submit")
        assert result.exit_code == 0, result.output
        (id_,) = (line for line in result.output.splitlines() if line.startswith("job_"))
        stack.wait(id_, "completed")
        texts = {each["text"] for each in stack.get(f"/v1/jobs/{id_}/responses").json()["data"]}
        assert texts == {"I read at home.", "I slept."}


@pytest.fixture(scope="module", params=["body", "upload", "copy"])
def chats(stack: Service, request: pytest.FixtureRequest) -> str:
    """A finished job on two chats of three turns and one of a single turn, by three ways into the database."""
    said = ["I love parties. I hate noise.", "I talk to everybody. The bus is late.", "I am shy."]
    chats = [[*said], [*reversed(said)], ["I danced until four. It rained."]]
    messages = [
        [each for n, text in enumerate(chat) for each in (f"user: Question {n}?", f"assistant: {text}")]
        for chat in chats
    ]
    lines = [
        {"messages": [dict(zip(("role", "content"), each.split(": "), strict=True)) for each in chat]}
        for chat in messages
    ]
    data = json_lines(*lines)
    found = read(stack, data, name="chats.jsonl", persona="E-high").json()
    assert found["notes"][0].startswith("Warning: 6 texts are turns of conversations")
    body = WITH | found["job"]
    if request.param == "upload":
        records = json_lines(*body["responses"])
        tus = {"Tus-Resumable": "1.0.0"}
        made = stack.http.post("/v1/uploads", headers=tus | {"Upload-Length": str(len(records))})
        headers = tus | {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
        assert stack.http.patch(made.headers["location"], content=records, headers=headers).status_code == 204
        body["responses"] = {"upload": made.headers["location"].rpartition("/")[2]}
    first = stack.wait(stack.submit(body)["id"], "completed")["id"]
    if request.param != "copy":
        return str(first)
    again = {"personas": ["E-high"], "tasks": ["social_media_post"], "responses": {"job": first}}
    return str(stack.wait(stack.submit(WITH | again)["id"], "completed")["id"])


class TestConversations:
    """Turns of one conversation depend on each other: they are no repeated runs."""

    def test_give_no_intervals_and_no_retest_consistency(self, stack: Service, chats: str) -> None:
        results = stack.get(f"/v1/jobs/{chats}/results").json()
        (cell,) = results["cells"]
        assert cell["runs"] == 3, "conversations, not turns"
        for found in (cell, next(each for each in results["totals"] if each["by"] == ["model"])):
            metric = found["metrics"]["acc_atom"]
            assert metric["value"] is not None
            assert (metric["ci95"], metric["ci95_wordings"]) == (None, None)
            assert metric["ci95_reason"].startswith("dependent_turns: ")
            assert found["metrics"]["rc_atom"]["value"] is None
        assert cell["metrics"]["acc_atom"]["n"] == 3
        assert cell["metrics"]["rc_atom"]["reason"].startswith("dependent_turns: ")
        assert results["headline"] == "The texts are turns of conversations: figures have no intervals."
        (warning,) = [each for each in results["warnings"] if each["code"] == "conversations"]
        assert warning["message"].startswith("6 texts are turns of 2 conversations")

    def test_are_named_in_report_terminal_comparison_and_gate(self, stack: Service, chats: str) -> None:
        words = "turns of 2 conversations and depend on each other"
        assert words in stack.get(f"/v1/jobs/{chats}/report?format=html").text
        url = str(stack.http.base_url).rstrip("/")
        for command in (["results", chats], ["status", chats]):
            shown = CliRunner().invoke(app, command, env={"ASSAY_URL": url, "COLUMNS": "400"})
            assert words in shown.output
        gate = stack.get(f"/v1/jobs/{chats}/gate", params={"threshold": "acc_atom>=0.01"}).json()
        assert gate["verdict"] == "inconclusive"
        assert "turns of one conversation" in gate["checks"][0]["reason"]
        sides = {"a": {"job": chats}, "b": {"baseline": "GPT-3.5-turbo"}}
        answer = stack.post("/v1/comparisons", sides)
        assert answer.status_code == 200, answer.text
        compared = answer.json()
        assert words in compared["a"]["warnings"][0]["message"]
        for difference in compared["differences"]:
            assert (difference["ci95"], difference["p_value"]) == (None, None)
            assert difference["ci95_reason"].startswith("dependent_turns: ")
        by_items = stack.post("/v1/comparisons", sides | {"pairing": "items"})
        assert by_items.status_code == 422

    def test_are_exported(self, stack: Service, chats: str) -> None:
        rows = stack.get(f"/v1/jobs/{chats}/report?format=jsonl&level=verdicts").text.splitlines()
        names = {json.loads(row).get("conversation") for row in rows}
        assert len(names - {None}) == 2
        responses = stack.get(f"/v1/jobs/{chats}/responses").json()["data"]
        assert sum(each["conversation"] is not None for each in responses) == 6


def test_the_documented_commands_work(stack: Service, tmp_path: Path) -> None:
    """Each command of the first block and of "What you may have to add", with files of the names that it has."""
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / "one.jsonl").write_bytes(FILES["openai_messages"]["chat.jsonl"])
    (tmp_path / "log.eval").write_bytes(FILES["inspect"]["log.eval"])
    (tmp_path / "answers.csv").write_bytes(b"prompt;answer\r\nWho are you?;I love parties.\r\n")
    (tmp_path / "batch_output.jsonl").write_bytes(FILES["batch"]["output.jsonl"])
    commands = [
        line.strip() for line in PAGE.read_text("utf-8").splitlines() if line.startswith("    assay import")
    ]
    for command in commands:
        words = command.replace("openai/gpt-6-luna", "simulated/sim-judge").split()[2:]
        if any("atomic" in word or "results/" in word for word in words):
            continue  # the paper's files, which test_imported_verdicts has
        files = [
            str(tmp_path / word).replace("*", "one")
            if "." in word
            and not word.startswith("-")
            and "=" not in word
            and "/gpt" not in word
            and "-judge" not in word
            else word
            for word in words
        ]
        result = assay(stack, *files)
        assert result.exit_code == 0, f"{command}\n{result.output}"


def figures(api: Service, job: str) -> dict[tuple[str, str], dict[str, float | None]]:
    names = ("acc_atom", "ic_atom", "mean")
    return {
        (each["persona"], each["dimension"]): {name: each["metrics"][name]["value"] for name in names}
        for each in api.get(f"/v1/jobs/{job}/results").json()["cells"]
    }


def test_our_own_export_of_verdicts_comes_back_with_the_same_figures(stack: Service, tmp_path: Path) -> None:
    body = {
        "personas": ["E-high", "N-low"],
        "tasks": ["social_media_post"],
        "models": ["simulated/sim-faithful"],
        "judges": ["simulated/sim-judge-lenient", "simulated/sim-judge-harsh"],
        "instructions": [0],
    }
    first = stack.post("/v1/jobs", body).json()["id"]
    stack.wait(first, "completed")
    for form in ("csv", "jsonl", "parquet"):
        file = tmp_path / f"verdicts.{form}"
        exported = stack.get(f"/v1/jobs/{first}/report?level=verdicts&format={form}")
        assert exported.status_code == 200, exported.text
        file.write_bytes(exported.content)
        result = assay(stack, file, "--submit")
        assert result.exit_code == 0, result.output
        (id_,) = (line for line in result.output.splitlines() if line.startswith("job_"))
        stack.wait(id_, "completed")
        before, after = figures(stack, first), figures(stack, id_)
        assert [*after.values()] == [*before.values()], form
        assert len(after) == 2
