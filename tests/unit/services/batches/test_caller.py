from uuid import uuid4

from app.services.batches.caller import MOST_CUSTOM_ID, _custom_id
from simulator.batches import _identity

JOB = "job_01m80nmms65fj99xxdwkmd40f8"


class TestCustomIds:
    def test_say_what_a_call_is_for_in_the_characters_that_providers_take(self) -> None:
        request_id = f"{JOB}/judging/12/3/0/3-7/0/1/a2"
        custom_id = _custom_id(request_id, uuid4())
        assert custom_id == f"{JOB}-judging-12-3-0-3_7-0-1-a2"
        assert _identity(custom_id) == request_id

    def test_that_would_be_too_long_only_name_the_call(self) -> None:
        call = uuid4()
        custom_id = _custom_id(f"{JOB}/judging/99999/32767/32767/32760-32767/9/9/a30000", call)
        assert custom_id == f"call-{call.hex}"
        assert len(custom_id) <= MOST_CUSTOM_ID
