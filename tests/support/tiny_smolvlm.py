"""A small SmolVLM with its own tokenizer, for SmolVLA without the hub: ``python tiny_smolvlm.py FOLDER``.

Runs in the Python that ``NIMBUS_LEROBOT_PYTHON`` names. SmolVLA draws random weights when it is created from the
config.
"""

# pyright: reportMissingImports=false
import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    SmolVLMConfig,
    SmolVLMImageProcessor,
    SmolVLMProcessor,
    SmolVLMVideoProcessor,
)

SPECIAL = {
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "bos_token": "<bos>",
    "eos_token": "<eos>",
    "fake_image_token": "<fake_token_around_image>",
    "image_token": "<image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
}
WORDS = "put move pick place the a cube red into to free area".split()


def main(folder: str) -> None:
    vocabulary = {word: number for number, word in enumerate([*SPECIAL.values(), *WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    own = {name: SPECIAL.pop(name) for name in ("unk_token", "pad_token", "bos_token", "eos_token")}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, extra_special_tokens=SPECIAL, **own)
    text = {"model_type": "llama", "vocab_size": len(vocabulary), "hidden_size": 64, "intermediate_size": 128}
    text |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    text |= {"pad_token_id": vocabulary["<pad>"], "bos_token_id": 2, "eos_token_id": 3}
    vision = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision |= {"image_size": 512, "patch_size": 32}
    image = vocabulary["<image>"]
    config = SmolVLMConfig(text_config=text, vision_config=vision, scale_factor=4, image_token_id=image)
    config.save_pretrained(folder)
    processor = SmolVLMProcessor(SmolVLMImageProcessor(), tokenizer, SmolVLMVideoProcessor(), chat_template="")
    processor.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
