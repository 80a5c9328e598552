"""Emits one run with OpenLineage's own client: START and COMPLETE with a version and a failed assertion.

Arguments: URL of the API, endpoint path, token, bucket and path of the table, snapshot, and `plain` where the
second event is not to be compressed. Prints nothing;
exits with an error where the client says that an event was not taken.
"""

import sys
from datetime import datetime, timezone

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import data_quality_assertions_dataset, dataset_version_dataset, symlinks_dataset
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpCompression, HttpConfig, HttpTransport
from openlineage.client.uuid import generate_new_uuid

url, endpoint, token, bucket, path, snapshot = sys.argv[1:7]
PRODUCER = "https://github.com/lakebell/lakebell/tests"


def client(compression=None):
    config = HttpConfig(
        url=url, endpoint=endpoint, auth=ApiKeyTokenProvider({"api_key": token}), compression=compression
    )
    return OpenLineageClient(transport=HttpTransport(config))


version = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=snapshot)
names = symlinks_dataset.SymlinksDatasetFacet(
    identifiers=[symlinks_dataset.Identifier(namespace="hive://metastore:9083", name="other.name", type="TABLE")]
)
assertion = data_quality_assertions_dataset.Assertion(assertion="not_null", success=False, column="id")
quality = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(assertions=[assertion])
table = {"namespace": f"s3://{bucket}", "name": path}
run, job = Run(runId=str(generate_new_uuid())), Job(namespace="tests", name="orders")


def event(state):
    return RunEvent(
        eventType=state,
        eventTime=datetime.now(timezone.utc).isoformat(),
        run=run,
        job=job,
        producer=PRODUCER,
        inputs=[InputDataset(**table, facets={"version": version}, inputFacets={"dataQualityAssertions": quality})]
        if state == RunState.COMPLETE
        else [],
        outputs=[OutputDataset(**table, facets={"version": version, "symlinks": names})],
    )


client().emit(event(RunState.START))
client(None if sys.argv[7:] == ["plain"] else HttpCompression.GZIP).emit(event(RunState.COMPLETE))
