"""The life of a table in each store: adopted, planned, applied, killed, resumed, read, written.

Servers of S3, GCS and Azure run here. On S3 real Hudi writes before, and reads and writes after.
"""

from __future__ import annotations

import json
from itertools import count

import pytest

from tests.oracle.faulty_runs import find_s3a_jars, make_s3_settings
from tests.oracle.store_project import StoreProject, make_hudi, put_rows
from tests.servers.proxy import Fault, running_proxy
from tests.servers.s3 import KEY, SECRET, S3Bucket

pytestmark = [pytest.mark.oracle, pytest.mark.spark, pytest.mark.long]
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  table:
    {{type: COPY_ON_WRITE, version: {version}, recordKey: [id], partitionBy: [p], ordering: [ts]}}
  files: {{target: 1MiB, small: 512KiB}}
  clustering: {{columns: [v], when: always}}
  index: {{columns: [v]}}
  retention: {{commits: 1}}
  concurrency: {{lock: {{provider: filesystem, singleWriter: true}}, staleAfter: 1h}}
"""
#: Hudi leaves connections open, and the server has no objects that are folders and files at once
HUDI_ON_S3 = {
    "spark.hadoop.fs.s3a.connection.maximum": "2000",
    "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
}
#: the change of an apply at which it is killed
KILLED_AT = 12
TOTAL = sum(i * 7 % 1000 for i in range(8000))


def tell(project, proxy, files, version=9, hudi=None):
    """Tell the story; the table is made of files of rows at ``files``, a folder and its options.

    ``hudi``: makes the table instead, and reads it after each change of ours.
    """
    folder, options = files
    spec = project.folder / "specs/orders.yaml"

    def check_rows(rows, total):
        out, _ = project.check("read", f"{project.url}/orders", "--format", "csv")
        values = [line.split(",") for line in out.splitlines()]
        place = values[0].index("v")
        assert (rows, total) == (len(values) - 1, sum(int(line[place]) for line in values[1:]))
        if hudi is not None:
            assert [rows, total] == hudi("read")

    if hudi is not None:
        assert hudi("create") == [8000, TOTAL]
    else:
        spec.parent.mkdir()
        spec.write_text(SPEC.format(version=version))
        for name, first in (("one", 0), ("two", 4000)):
            put_rows(folder, options, name, range(first, first + 4000))
            project.check("write", spec, f"{folder}/{name}.parquet", "--operation", "insert")
        spec.unlink()
    project.check("init", "--from", f"{project.url}/orders", "-o", "specs")
    project.check("lint", spec)
    out, _ = project.check("plan", spec)
    assert "no files to remove" in out

    spec.write_text(SPEC.format(version=version))
    project.check("plan", "specs", "-o", "plan.json")
    for secret in project.secrets.values():
        assert secret not in (project.folder / "plan.json").read_text()
    changes = count(1)

    def is_moment(request):
        is_change = request.method in ("PUT", "POST", "DELETE")
        if is_change and next(changes) == KILLED_AT:
            project.kill()
            return True
        return False

    proxy.faults.append(Fault("drop", is_moment))
    code, _, _ = project.run("apply", "plan.json", "--env", "prod")
    proxy.faults.clear()
    assert code == -9
    check_rows(8000, TOTAL)
    table = find_status(project)
    assert any("of an earlier apply" in reason for reason in table["because"]), table
    out, _ = project.check("unlock", "specs", "--yes")
    assert "orders" in out

    _, err = project.check("plan", "specs", "-o", "plan.json")
    assert "orders: resume" in err
    project.check("apply", "plan.json")
    table = find_status(project)
    assert {"Healthy": "True"}.items() <= {
        c["type"]: c["status"] for c in table["conditions"]
    }.items()
    out, _ = project.check(
        "read", f"{project.url}/orders", "--where", "v = 7", "--explain", "--format", "json"
    )
    assert "after the index" in out or "index" in json.loads(out)
    total = TOTAL
    if hudi is not None:
        assert hudi("upsert") == [8000, TOTAL + 999]
        total += 999
    total += put_rows(folder, options, "more", range(8000, 8100))
    project.check("write", spec, f"{folder}/more.parquet", "--operation", "insert")
    _, err = project.check("plan", "specs", "-o", "plan.json")
    assert "orders: cluster, index, clean;" in err
    project.check("apply", "plan.json")
    check_rows(8100, total)


def find_status(project):
    """Return what ``status`` says of the table."""
    _, out, _ = project.run("status", "specs", "--env", "prod", "--format", "json")
    (table,) = json.loads(out)["tables"]
    return table


@pytest.mark.parametrize(("release", "version"), [("1.2.0", 9), ("0.15.0", 6)])
def test_a_table_of_real_hudi_lives_on_s3(tmp_path, s3_bucket, s3_proxy, release, version):
    far = S3Bucket(name=s3_bucket.name, endpoint=s3_proxy.endpoint)
    secrets = {"LAKE_KEY": KEY, "LAKE_SECRET": SECRET}
    project = StoreProject(folder=tmp_path, url=far.url, secrets=secrets)
    project.write_environment(
        f"endpoint: {far.endpoint}\nregion: us-east-1\npathStyle: true\n"
        "key: {fromEnv: LAKE_KEY}\nsecret: {fromEnv: LAKE_SECRET}"
    )
    hudi = make_hudi(
        release,
        version,
        find_s3a_jars(),
        make_s3_settings(s3_bucket) | HUDI_ON_S3,
        f"s3a://{s3_bucket.name}/orders",
    )

    files = f"{s3_bucket.url}/in", s3_bucket.options
    tell(project, s3_proxy, files, version=version, hudi=hudi)


def test_a_table_lives_on_gcs(tmp_path, google_server):
    with running_proxy(google_server.endpoint) as proxy:
        url = google_server.make_bucket()
        project = StoreProject(folder=tmp_path, url=url, secrets={})
        project.write_environment(f"endpoint: {proxy.endpoint}\nanonymous: true\nproject: test")

        tell(project, proxy, (f"{url}/in", google_server.options))


def test_a_table_lives_on_azure(tmp_path, azure_server):
    with running_proxy(azure_server.address) as proxy:
        url = azure_server.make_container()
        connection = azure_server.options["connection_string"]
        secrets = {"LAKE_CONNECTION": connection.replace(azure_server.address, proxy.endpoint)}
        project = StoreProject(folder=tmp_path, url=url, secrets=secrets)
        project.write_environment("connection_string: {fromEnv: LAKE_CONNECTION}")

        tell(project, proxy, (str(tmp_path / "in"), {}))
