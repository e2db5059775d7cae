"""A job names the time zone of texts where its source does not."""

import pytest

from anabranch.jobs.ends import SourceSection
from anabranch.jobs.kafka_sections import KafkaSourceSection

TOPIC = KafkaSourceSection(topics="in", servers="localhost:9092", zone="Berlin")


@pytest.mark.parametrize(
    ("source", "rule", "way_out"),
    [
        (SourceSection(path="feeds", zone="Berlin"), "'Berlin' is no name of one", "'Europe/Berlin'"),
        (SourceSection(kafka=TOPIC, schema="at timestamp"), "'Berlin' is no name of one", "[source.kafka]"),
        (
            SourceSection(kafka=KafkaSourceSection(topics="in"), schema="at timestamp", zone="UTC"),
            r"zone is for folders, and \[source.kafka\] is given",
            "Write it in [source.kafka]",
        ),
        (
            SourceSection(format="json", zone="UTC"),
            "zone is for folders, and the format is 'json'",
            "spark.sql.session.timeZone",
        ),
    ],
)
def test_a_zone_that_cannot_be_meant_is_refused(source, rule, way_out):
    with pytest.raises(ValueError, match=rule) as caught:
        source.check()
    assert way_out in " ".join(caught.value.__notes__)


def test_a_zone_is_one_of_the_iana_database():
    SourceSection(path="feeds", zone="Europe/Berlin").check()
