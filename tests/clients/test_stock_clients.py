"""Stock Python clients work unchanged; their stories are in `compat_tests/client_stories`."""

import pytest

from compat_tests.client_stories.stories import STORIES, topic_of
from compat_tests.ottla_server import Ottla


@pytest.mark.parametrize(("client", "story"), STORIES)
def test_ottla_serves_the_client(ottla: Ottla, client: str, story: str) -> None:
    STORIES[client, story](ottla.bootstrap, topic_of(client, story))
