"""A data set as Hugging Face's library writes it; run by the tools' own Python."""

import sys

from datasets import Dataset

ROWS = {
    "persona": ["an extraverted person", "an extraverted person", None],
    "prompt": ["How was your weekend?"] * 3,
    "response": ["I love parties. I talk to everybody.", "Loud. I danced until four.", "I read."],
    "model": ["bot-1", "bot-2", "bot-1"],
}
CHATS = [
    {
        "conversations": [
            {"from": "system", "value": "You are an extraverted person."},
            {"from": "human", "value": "How was your weekend?"},
            {"from": "gpt", "value": "I love parties. I talk to everybody."},
        ]
    }
] * 2


def main(directory: str) -> None:
    rows = Dataset.from_dict(ROWS)
    rows.to_parquet(f"{directory}/rows.parquet")
    rows.to_json(f"{directory}/rows.jsonl")
    rows.to_csv(f"{directory}/rows.csv")
    Dataset.from_list(CHATS).to_parquet(f"{directory}/chats.parquet")


main(sys.argv[1])
