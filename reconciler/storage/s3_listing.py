"""List objects of S3 in pages, of which only keys and sizes are kept.

The client makes a mapping of every object of a page, and takes most of a listing's time for it.
Pages that are asked for here are read in a fraction of that time, without an object for each file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final
from xml.etree import ElementTree as ET

from reconciler.storage.request_budget import RequestsFailedError

_OPERATION: Final = "list_objects_v2"
_ROOT: Final = "ListBucketResult"
#: where the keys and sizes of a page lie in the client's answer
_COLUMNS: Final = "KeysAndSizes"
#: whether answers to requests of this context are read as columns
_AS_COLUMNS: Final[ContextVar[bool]] = ContextVar("as_columns", default=False)


def list_pages(
    filesystem: Any, bucket: str, root: str, prefix: str
) -> Iterator[tuple[list[str], list[int]]]:
    """Yield names and sizes of all objects below a root whose names begin with a prefix.

    ``root``: the start of their keys, which names do not have.
    """
    asked = {"Bucket": bucket, "Prefix": root + prefix}
    while True:
        answer = _request_page(filesystem, asked)
        keys, sizes = _take_columns(answer)
        yield [key[len(root) :] for key in keys], sizes
        if not answer.get("IsTruncated"):
            return
        token = answer.get("NextContinuationToken")
        if not token or token == asked.get("ContinuationToken"):
            raise RequestsFailedError(
                "the listing breaks off: the store says that more pages follow, but names no next"
            )
        asked["ContinuationToken"] = token


def _request_page(filesystem: Any, asked: Mapping[str, str]) -> Mapping[str, Any]:
    before = _AS_COLUMNS.set(True)  # the client's event loop takes the context over
    try:
        answer: Mapping[str, Any] = filesystem.call_s3(_OPERATION, **asked)
    finally:
        _AS_COLUMNS.reset(before)
    return answer


def _take_columns(answer: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    columns: tuple[list[str], list[int]] | None = answer.get(_COLUMNS)
    if columns is None:  # the client's own reading of a page
        contents = answer.get("Contents", [])
        columns = [str(one["Key"]) for one in contents], [int(one["Size"]) for one in contents]
    return columns


def parse_page(body: bytes) -> dict[str, Any] | None:
    """Return the client's answer of a page, with columns for its objects.

    Returns None for what is not a whole page, and for one with parts that are no objects: the
    client reads it itself.
    """
    from botocore.compat import unquote_str  # noqa: PLC0415 (heavy, comes with s3fs)

    try:
        root = ET.fromstring(body)  # noqa: S314 (the client itself reads answers so)
    except ET.ParseError:
        return None
    space = root.tag.removesuffix(_ROOT)
    if root.tag != space + _ROOT or root.find(f"{space}CommonPrefixes") is not None:
        return None
    objects = root.findall(f"{space}Contents")
    keys = [one.findtext(f"{space}Key") for one in objects]
    sizes = [one.findtext(f"{space}Size") for one in objects]
    if not all(keys) or not all(size and size.isdecimal() for size in sizes):
        return None
    names = [key or "" for key in keys]
    if root.findtext(f"{space}EncodingType") == "url":
        names = [unquote_str(key) if "%" in key or "+" in key else key for key in names]
    return {
        "IsTruncated": root.findtext(f"{space}IsTruncated") == "true",
        "NextContinuationToken": root.findtext(f"{space}NextContinuationToken"),
        _COLUMNS: (names, [int(size or 0) for size in sizes]),
    }


def install_page_parser(session: Any) -> None:
    """Let a session of aiobotocore read the pages that ``list_pages`` asks for as columns."""
    from aiobotocore.parsers import (  # noqa: PLC0415 (heavy, comes with s3fs)
        AioResponseParserFactory,
        AioRestXMLParser,
    )

    class PageParser(AioRestXMLParser):  # type: ignore[misc]
        def _do_parse(self, response: Mapping[str, Any], shape: Any) -> Any:
            if _AS_COLUMNS.get() and shape is not None and shape.name == "ListObjectsV2Output":
                page = parse_page(response["body"])
                if page is not None:
                    return page
            return super()._do_parse(response, shape)

    class ParserFactory(AioResponseParserFactory):  # type: ignore[misc]
        def create_parser(self, protocol_name: str) -> Any:
            if protocol_name == "rest-xml":
                return PageParser(**self._defaults)
            return super().create_parser(protocol_name)

    session.register_component("response_parser_factory", ParserFactory())
