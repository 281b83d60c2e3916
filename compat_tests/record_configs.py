"""Records what Apache Kafka's configurations are, and what it says to good and bad values.

    .venv/bin/python -m compat_tests.record_configs

writes tests/data/kafka-4.3.1-configs.jsonl.gz for `tests/test_config_keys.py`: a line for each
configuration. What it says to the texts stands with the first of those to which it says the same;
the others name that one. Needs Java and Maven.
"""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from compat_tests.jars import compiled_java
from compat_tests.record import write

# Values around the bounds of what Kafka's types and validators let pass.
TEXTS = (
    """
|true|TRUE|False|yes|x|X|0|1|-1|-2|-3|2|3|4|5|6|9|10|11|17|18|22|23|25|26|50|99|100|101|500|501|999
1000|1001|1023|1024|1999|2000|2001|9999|10000|10001|29999|30000|30001|32767|32768|86400|86401
524287|524288|1048575|1048576|8388607|8388608|3600000|3600001|-131072|-131073|2147483647|2147483648
-2147483648|9223372036854775807|9223372036854775808|1.5|0.5|0.51|1e3|1.0|+5| 7 |0x10|1_000
NaN|Infinity|.5|5.
1f|1e-5|0.001|12345678.9|1e30|a,b|a,a|a, ,b|a,|,| a , b |compact|delete|compact,delete
delete,compact|delete,delete|Delete|gzip|GZIP|zstd|none|uncompressed|producer|CreateTime|createtime
LogAppendTime|ES256|rs256|required|classic|consumer,classic|streams|broker|controller
broker,controller|upgrade|BIDIRECTIONAL|disabled|PLAINTEXT|plaintext|latest|earliest
by_duration:PT1H|by_duration:-PT1H|by_duration:x|by_duration:P1DT2H3M4.5S|by_duration:PT
read_committed|1:2|0:1,0:1|0:1,0:2|0:1,2:3|*|1:|:2|0:1,*|*,*|uniform|range,uniform|simple
client_id=x|client_id=[|a=b|localhost:9093|[::1]:9093|1@localhost:9093|1@[::1]:9093|1@localhost
a@localhost:1
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
NAME = "<name>"


def main() -> None:
    command = ["java", "-cp", compiled_java(), "Configs", "", *TEXTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    write("configs", once(map(json.loads, done.stdout.splitlines())))


def once(configs: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """With every set of answers written down once."""
    first: dict[str, str] = {}
    for config in configs:
        said = config.pop("said")
        for answer in said.values():
            if "error" in answer:
                answer["error"] = answer["error"].replace(config["name"], NAME)
        told = json.dumps(said)
        name = f"{config['kind']} {config['name']}"
        if told in first:
            yield {**config, "says_as": first[told]}
        else:
            first[told] = name
            yield {**config, "said": said}


if __name__ == "__main__":
    main()
