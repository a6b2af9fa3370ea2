import pytest

from app.domain.instruments.dimension import Scale
from app.domain.judging.constrained import (
    check_reply_form,
    constrained,
    is_constrained,
    number_of,
    options_of,
)
from app.domain.providers.model import ConnectionKind, Model, ReplyForm, ServerName, Takes
from app.llm.connections.connections import Connection
from app.llm.models.table import takes_at, ways_to_constrain, with_parameters

OPTIONS = options_of(Scale())
SCORE = {"type": "integer", "enum": [1, 2, 3, 4, 5, 9]}


def schema(*names: str) -> dict[str, object]:
    fields = dict.fromkeys(names, SCORE)
    return {"type": "object", "properties": fields, "required": [*names], "additionalProperties": False}


def response_format(name: str, of: object) -> dict[str, object]:
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": name, "strict": True, "schema": of},
        }
    }


def judge(connection: Connection) -> Model:
    return Model("j", connection.id, "j", takes=takes_at(connection, "j"))


def at(
    kind: ConnectionKind, server: ServerName | None = None, url: str = "https://models.test/v1"
) -> Connection:
    return Connection("c", kind, url, server=server)


def problems(form: ReplyForm, *judges: Model, grouped: bool = False, hardened: bool = False) -> list[str]:
    found: list[str] = []
    check_reply_form(
        form,
        judges,
        lambda field, problem: found.append(f"{field}: {problem}"),
        grouped=grouped,
        hardened=hardened,
    )
    return found


class TestConstrained:
    @pytest.mark.parametrize(
        ("kind", "server", "form", "fields"),
        [
            ("openai", None, "choice", response_format("choice", SCORE)),
            ("openai", None, "json_schema", response_format("verdict", schema("score"))),
            ("openai", "vllm", "choice", {"structured_outputs": {"choice": ["1", "2", "3", "4", "5", "9"]}}),
            ("completions", "vllm", "json_schema", {"structured_outputs": {"json": schema("score")}}),
            ("openai", "vllm-0.11", "choice", {"guided_choice": ["1", "2", "3", "4", "5", "9"]}),
            (
                "completions",
                "llama.cpp",
                "choice",
                {"grammar": 'root ::= "1" | "2" | "3" | "4" | "5" | "9"'},
            ),
            ("openai", "sglang", "choice", {"regex": "(1|2|3|4|5|9)"}),
            (
                "anthropic",
                None,
                "json_schema",
                {"output_config": {"format": {"type": "json_schema", "schema": schema("score")}}},
            ),
        ],
    )
    def test_body_has_the_servers_fields(
        self,
        kind: ConnectionKind,
        server: ServerName | None,
        form: ReplyForm,
        fields: dict[str, object],
    ) -> None:
        connection = at(kind, server)
        model = constrained(judge(connection), form, OPTIONS)
        body = with_parameters(connection.kind, model, {"prompt": "?"})
        assert {name: body[name] for name in fields} == fields
        assert with_parameters(connection.kind, judge(connection), {"prompt": "?"}).keys() == (
            body.keys() - fields.keys()
        )

    def test_several_sentences_have_a_number_each(self) -> None:
        model = constrained(judge(at("openai")), "json_schema", OPTIONS, sentences=3)
        assert model.constraint == response_format("verdict", schema("S1", "S2", "S3"))

    def test_negative_scores_are_options(self) -> None:
        scale = Scale(-1, 1, ("low", "high"), 9)
        model = constrained(judge(at("openai", "sglang")), "choice", options_of(scale))
        assert model.constraint == {"regex": r"(\-1|0|1|9)"}

    def test_text_leaves_the_judge_as_it_is(self) -> None:
        assert constrained(judge(at("openai")), "text", OPTIONS) == judge(at("openai"))

    def test_effort_stays_beside_the_format(self) -> None:
        model = constrained(judge(at("anthropic")), "json_schema", OPTIONS)
        with_effort = with_parameters("anthropic", model, {"output_config": {"effort": "low"}})
        given = {"type": "json_schema", "schema": schema("score")}
        assert with_effort["output_config"] == {"effort": "low", "format": given}


class TestWays:
    def test_of_a_known_host_is_its_own(self) -> None:
        openai = at("openai", url="https://api.openai.com/v1")
        assert (
            list(ways_to_constrain(openai, "choice")),
            list(ways_to_constrain(openai, "json_schema")),
        ) == (
            [],
            [None],
        )

    def test_of_an_unknown_server_are_all_that_differ(self) -> None:
        assert list(ways_to_constrain(at("openai"), "choice")) == [
            None,
            "vllm",
            "vllm-0.11",
            "llama.cpp",
            "sglang",
        ]

    def test_of_a_configured_server_is_one(self) -> None:
        assert list(ways_to_constrain(at("openai", "llama.cpp"), "choice")) == ["llama.cpp"]


class TestReplies:
    @pytest.mark.parametrize(
        ("reply", "form", "is_form"),
        [
            ("4", "choice", True),
            (" 9\n", "choice", True),
            ("6", "choice", False),
            ("The sea is wide.", "choice", False),
            ('{"score": 4}', "json_schema", True),
            ('{\n  "score":\n 4\n}', "json_schema", True),
            ('{"score": 6}', "json_schema", False),
            ('{"score": 4, "why": "wide"}', "json_schema", False),
            ("4", "json_schema", False),
            ("The sea is wide.", "json_schema", False),
        ],
    )
    def test_a_free_text_is_told_from_a_constrained_one(
        self, reply: str, form: ReplyForm, is_form: bool
    ) -> None:
        assert is_constrained(reply, form, OPTIONS) is is_form

    @pytest.mark.parametrize(
        ("reply", "cut_off", "number"),
        [
            ('{"score": 4}', False, 4),
            ('{\n  "score":\n   4\n', True, 4),
            ('{"score": 4', True, 4),
            ('{"score": 4', False, None),
            ('{"score": 1 ', True, 1),
            ('{"score": 1', True, None),  # may have been 10
            ('{"score": 7}', False, None),
            ('{"score":', True, None),
            ("4", False, None),
        ],
    )
    def test_number_of_a_reply_that_may_end_early(
        self, reply: str, cut_off: bool, number: int | None
    ) -> None:
        assert number_of(reply, (1, 2, 3, 4, 5, 10), cut_off=cut_off) == number


class TestCheckReplyForm:
    def test_text_needs_nothing(self) -> None:
        assert problems("text", grouped=True, hardened=True) == []

    def test_form_that_the_connection_lacks_is_refused_with_those_it_has(self) -> None:
        (found,) = problems("choice", judge(at("openai", url="https://api.openai.com/v1")))
        assert found.startswith("/judging/reply: the connection of judge 'j' has no field")
        assert "use 'json_schema', 'text'" in found

    def test_base_models_servers_must_be_named(self) -> None:
        (found,) = problems("json_schema", judge(at("completions")))
        assert "`server`" in found

    def test_choice_is_refused_for_several_sentences(self) -> None:
        (found,) = problems("choice", judge(at("openai")), grouped=True)
        assert "'json_schema'" in found

    def test_key_words_exclude_it(self) -> None:
        (found,) = problems("json_schema", judge(at("openai")), hardened=True)
        assert "key word" in found

    def test_a_job_without_called_judges_is_refused(self) -> None:
        assert problems("choice") == ["/judging/reply: the job calls no judge: leave it out"]

    def test_a_judge_of_unknown_parameters_is_refused(self) -> None:
        assert problems("choice", Model("j", "c", "j", takes=Takes()))
