"""Reads of S3 whose bytes do not arrive whole are made again."""

from __future__ import annotations

from reconciler.storage.request_budget import RequestPolicy
from reconciler.storage.s3_requests import repeat_broken_reads


def test_bytes_of_another_checksum_are_read_again():
    class FlexibleChecksumError(Exception):
        """As botocore's, when an object is replaced while it is read."""

    answers = [FlexibleChecksumError("Expected checksum"), b"whole"]

    def read():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert repeat_broken_reads(read, RequestPolicy(), "lock.json") == b"whole"
