import pytest

from app.domain.labels.annotation import Answer
from app.domain.labels.annotation_file import AnnotationDraft, read_csv

R = "resp_01kxyz0abcdefghjkmnpqrstvw-0-3-0"


class TestCsv:
    def test_a_score_a_pair_and_what_does_not_apply(self) -> None:
        read = read_csv(
            "\ufeffresponse,annotator,unit,score,other_response,other_unit,preferred\r\n"
            f"{R},anna,2,4,,,\r\n\r\n{R},anna,,not_applicable,,,\r\n{R},ben,0,,{R},1,second\r\n"
        )
        assert read.errors == ()
        assert read.drafts == (
            AnnotationDraft("/lines/2", "anna", R, 2, None, 4),
            AnnotationDraft("/lines/4", "anna", R, None, None, "not_applicable"),
            AnnotationDraft("/lines/5", "ben", R, 0, None, None, R, 1, Answer.SECOND),
        )

    @pytest.mark.parametrize(
        ("text", "pointer", "message"),
        [
            ("", "", "must contain at least one annotation"),
            ("annotator,response\n", "", "must contain at least one annotation"),
            ("annotator,score\nanna,4\n", "/lines/1", "the header must have response"),
            ("annotator,response,rating\n", "/lines/1", "no such column: 'rating'"),
            ("annotator,response,response\n", "/lines/1", "a column appears twice"),
            (f"annotator,response,score\nanna,{R}\n", "/lines/2", "has 2 fields, the header 3"),
            (f"annotator,response,score\n,{R},4\n", "/lines/2/annotator", "is required"),
            (f"annotator,response,score\nanna,{R},4.5\n", "/lines/2/score", "must be a whole number"),
            (f"annotator,response,unit\nanna,{R},first\n", "/lines/2/unit", "must be a whole number"),
            (f"annotator,response,preferred\nanna,{R},left\n", "/lines/2/preferred", "must be first"),
            (f'annotator,response\n"anna,{R}\n', "/lines/2", "not CSV"),
        ],
    )
    def test_what_is_wrong_is_named_by_line_and_column(self, text: str, pointer: str, message: str) -> None:
        read = read_csv(text)
        assert read.drafts == ()
        (error,) = read.errors
        assert error.pointer == pointer
        assert error.message.startswith(message)
