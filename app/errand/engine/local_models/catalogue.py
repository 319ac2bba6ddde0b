"""The models that can be downloaded by one click, smallest first; a later row is the better model.

All are instruct models in GGUF format, quantised to 4 bits (Q4_K_M), which call tools by their chat template. Sizes and
checksums are those that the hub gives for the revision (its LFS object id).
"""

from dataclasses import dataclass

from errand.text.translation import marked

_APACHE = "Apache-2.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueModel:
    """A model of the hub. `good_for` is for people.

    `parameters` are in billions; of a mixture of experts, `active_parameters` work on each token. `cache_bytes` is what
    a token of context takes in memory.
    """

    name: str
    title: str
    good_for: str
    licence: str
    repository: str
    revision: str
    file: str
    size_bytes: int
    sha256: str
    parameters: float
    active_parameters: float
    cache_bytes: int
    context_tokens: int


CATALOGUE = (
    CatalogueModel(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder 0.5B",
        good_for=marked("Tries things out on a small machine: one short step at a time."),
        licence=_APACHE,
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        revision="bf1da6ca8f02b444067db175f02a14e74f49c5c0",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        parameters=0.5,
        active_parameters=0.5,
        cache_bytes=12_288,
        context_tokens=32_768,
    ),
    CatalogueModel(
        name="qwen2.5-coder-1.5b",
        title="Qwen2.5-Coder 1.5B",
        good_for=marked("Simple tasks with files and commands, without a graphics card."),
        licence=_APACHE,
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        revision="f86cb2c1fa58255f8052cc32aeede1b7482d4361",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        parameters=1.5,
        active_parameters=1.5,
        cache_bytes=28_672,
        context_tokens=32_768,
    ),
    CatalogueModel(
        name="qwen3-4b-2507",
        title="Qwen3 4B Instruct 2507",
        good_for=marked("Tasks of several steps; follows instructions well for its size."),
        licence=_APACHE,
        repository="bartowski/Qwen_Qwen3-4B-Instruct-2507-GGUF",
        revision="ae44f08e1392f39c0e474af10c3ff8355c8b6688",
        file="Qwen_Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
        size_bytes=2_497_280_736,
        sha256="2fde00ce69dd4899c70d020845e2638353015bba0fdf161b3eb965f2bca4464e",
        parameters=4.0,
        active_parameters=4.0,
        cache_bytes=147_456,
        context_tokens=262_144,
    ),
    CatalogueModel(
        name="qwen2.5-coder-7b",
        title="Qwen2.5-Coder 7B",
        good_for=marked("Writes and changes code in a few files."),
        licence=_APACHE,
        repository="Qwen/Qwen2.5-Coder-7B-Instruct-GGUF",
        revision="13fb94bfda8c8cf22497dc57b78f391a9acb426a",
        file="qwen2.5-coder-7b-instruct-q4_k_m.gguf",
        size_bytes=4_683_073_536,
        sha256="509287f78cb4d4cf6b3843734733b914b2c158e43e22a7f4bf5e963800894d3c",
        parameters=7.6,
        active_parameters=7.6,
        cache_bytes=57_344,
        context_tokens=32_768,
    ),
    CatalogueModel(
        name="qwen3-8b",
        title="Qwen3 8B",
        good_for=marked("Thinks before it acts; needs a graphics card or patience."),
        licence=_APACHE,
        repository="Qwen/Qwen3-8B-GGUF",
        revision="7c41481f57cb95916b40956ab2f0b139b296d974",
        file="Qwen3-8B-Q4_K_M.gguf",
        size_bytes=5_027_783_488,
        sha256="d98cdcbd03e17ce47681435b5150e34c1417f50b5c0019dd560e4882c5745785",
        parameters=8.2,
        active_parameters=8.2,
        cache_bytes=147_456,
        context_tokens=40_960,
    ),
    CatalogueModel(
        name="qwen3-coder-30b-a3b",
        title="Qwen3-Coder 30B-A3B",
        good_for=marked("Made for agents that program; fast for its size, if the memory is there."),
        licence=_APACHE,
        repository="unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF",
        revision="b17cb02dd882d5b6ab62fc777ad2995f19668350",
        file="Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf",
        size_bytes=18_556_689_568,
        sha256="fadc3e5f8d42bf7e894a785b05082e47daee4df26680389817e2093056f088ad",
        parameters=30.5,
        active_parameters=3.3,
        cache_bytes=98_304,
        context_tokens=262_144,
    ),
)
