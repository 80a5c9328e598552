#!/usr/bin/env python3
"""Rules of infra/template.yaml that a lint does not know. Run by `cargo xtask test`; needs aws-sam-translator."""

import json
import pathlib
import re
import unittest

from samtranslator.yaml_helper import yaml_parse

TEMPLATE = yaml_parse((pathlib.Path(__file__).parent / "template.yaml").read_text(encoding="utf-8"))
RESOURCES = TEMPLATE["Resources"]


def of_type(kind):
    """The resources of a type, by logical id."""
    return {name: resource["Properties"] for name, resource in RESOURCES.items() if resource["Type"] == kind}


def mappings():
    """Every event source mapping: the SQS events of functions, and explicit ones. (name, function, properties)"""
    for function, properties in of_type("AWS::Serverless::Function").items():
        for event, definition in properties.get("Events", {}).items():
            if definition["Type"] == "SQS":
                yield f"{function}.{event}", function, definition["Properties"]
    for name, properties in of_type("AWS::Lambda::EventSourceMapping").items():
        yield name, None, properties


def consumed(properties):
    """The logical id of the queue that a mapping reads."""
    source = properties.get("Queue") or properties["EventSourceArn"]
    return source["Fn::GetAtt"][0]


def found(value, key):
    """All values under a key, however deep."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield inner
            yield from found(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from found(inner, key)


def statements(value):
    """All policy statements, however deep and whatever condition they stand under."""
    if isinstance(value, dict):
        if "Effect" in value and ("Action" in value or "NotAction" in value):
            yield value
        for inner in value.values():
            yield from statements(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from statements(inner)


def as_list(value):
    """A list, also of one."""
    return value if isinstance(value, list) else [value]


class Queues(unittest.TestCase):
    """Queues, their consumers and their dead letters."""

    def test_every_mapping_reports_the_failures_of_a_batch_one_by_one(self):
        self.assertEqual(len(list(mappings())), 3)
        for name, _, properties in mappings():
            self.assertEqual(properties.get("FunctionResponseTypes"), ["ReportBatchItemFailures"], name)

    def test_every_mapping_has_a_maximum_concurrency(self):
        for name, _, properties in mappings():
            self.assertIn("MaximumConcurrency", properties.get("ScalingConfig", {}), name)

    def test_the_ceiling_towards_the_scheduler_is_a_parameter(self):
        ceilings = [p["ScalingConfig"] for _, function, p in mappings() if function == "Dispatcher"]
        self.assertEqual(ceilings, [{"MaximumConcurrency": {"Ref": "DispatcherMaximumConcurrency"}}])

    def test_every_queue_that_is_read_has_a_dead_letter_queue_and_a_generous_receive_count(self):
        queues = of_type("AWS::SQS::Queue")
        dead_letters = set()
        for name, _, properties in mappings():
            redrive = queues[consumed(properties)].get("RedrivePolicy")
            self.assertIsNotNone(redrive, name)
            self.assertGreaterEqual(redrive["maxReceiveCount"], 10, name)
            dead_letters.add(redrive["deadLetterTargetArn"]["Fn::GetAtt"][0])
        read = {consumed(properties) for _, _, properties in mappings()}
        self.assertEqual(len(dead_letters), len(read), "a dead-letter queue each")
        self.assertEqual(set(queues), read | dead_letters, "no queue without a reader")

    def test_a_message_stays_invisible_for_six_times_the_functions_time_out(self):
        default = TEMPLATE["Globals"]["Function"]["Timeout"]
        functions, queues = of_type("AWS::Serverless::Function"), of_type("AWS::SQS::Queue")
        for name, function, properties in mappings():
            timeout = functions[function].get("Timeout", default)
            self.assertGreaterEqual(queues[consumed(properties)]["VisibilityTimeout"], 6 * timeout, name)

    def test_queues_are_standard(self):
        for name, properties in of_type("AWS::SQS::Queue").items():
            self.assertNotIn("FifoQueue", properties, name)

    def test_every_dead_letter_queue_has_an_alarm(self):
        alarms = of_type("AWS::CloudWatch::Alarm").values()
        queues = [alarm for alarm in alarms if alarm["Namespace"] == "AWS/SQS"]
        watched = {alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0] for alarm in queues}
        dead = {q["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
                for q in of_type("AWS::SQS::Queue").values() if "RedrivePolicy" in q}
        self.assertEqual(watched, dead)

    def test_services_send_to_queues_for_named_accounts_only(self):
        for name, policy in of_type("AWS::SQS::QueuePolicy").items():
            for statement in statements(policy):
                self.assertIn("aws:SourceAccount", statement["Condition"]["StringEquals"], name)


class Rights(unittest.TestCase):
    """Least privilege."""

    def test_no_action_is_a_pattern(self):
        all_statements = list(statements(RESOURCES))
        self.assertGreater(len(all_statements), 10)
        for statement in all_statements:
            self.assertNotIn("NotAction", statement)
            for action in as_list(statement["Action"]):
                self.assertNotIn("*", action, statement.get("Sid"))

    def test_no_statement_is_about_all_resources(self):
        for statement in statements(RESOURCES):
            self.assertNotIn("*", as_list(statement.get("Resource", [])), statement.get("Sid"))

    def test_the_lake_is_only_read_but_for_consumer_files_where_they_are_asked_for(self):
        reads = {"s3:GetObject", "s3:ListBucket", "kms:Decrypt"}
        written = []
        for statement in statements(RESOURCES):
            actions = {a for a in as_list(statement["Action"]) if a.startswith(("s3:", "kms:"))}
            if actions - reads:
                written.append(statement["Sid"])
                self.assertIn(actions, ({"s3:PutObject"}, {"kms:GenerateDataKey"}))
                if actions == {"s3:PutObject"}:
                    self.assertIn("/*/consumer/consumer-lakebell-*", json.dumps(statement["Resource"]))
        self.assertEqual(written, ["Consumers", "ConsumersOfCreatedBucket", "ConsumerKeys"])
        conditional = {branches[1]["Sid"]: branches[0] for branches in found(RESOURCES, "Fn::If")
                       if isinstance(branches[1], dict) and branches[1].get("Sid") in written}
        self.assertEqual(set(conditional), set(written))
        for condition in conditional.values():
            self.assertIn({"Condition": "WritesConsumers"}, TEMPLATE["Conditions"][condition]["Fn::And"])
        self.assertEqual(TEMPLATE["Parameters"]["KeepConsumers"]["Default"], "false")

    def test_catalogs_are_only_read(self):
        actions = {a for s in statements(RESOURCES) for a in as_list(s["Action"]) if a.startswith(("glue:", "s3tables:"))}
        self.assertTrue(actions)
        for action in actions:
            self.assertRegex(action, ":Get", action)

    def test_secrets_are_read_by_name_only(self):
        for statement in statements(RESOURCES):
            if "secretsmanager:GetSecretValue" in as_list(statement["Action"]):
                text = json.dumps(statement["Resource"])
                self.assertTrue("${Prefix}*" in text or '"Ref"' in text, text)

    def test_no_output_shows_a_secret(self):
        hidden = {name for name, parameter in TEMPLATE["Parameters"].items() if parameter.get("NoEcho")}
        self.assertEqual(hidden, {"ApiToken", "SchedulerToken"})
        self.assertFalse(hidden & set(found(TEMPLATE["Outputs"], "Ref")))
        for name, function in of_type("AWS::Serverless::Function").items():
            self.assertFalse(hidden & set(found(function, "Ref")), name)


class Access(unittest.TestCase):
    """Who may call the API. That IAM is checked cannot be tried locally: MiniStack checks no signature."""

    def test_iam_closes_all_but_the_paths_with_a_token(self):
        methods = of_type("AWS::ApiGateway::Method")
        resources = of_type("AWS::ApiGateway::Resource")
        self.assertEqual(set(methods), {"ApiMethod", "ApiWritersMethod"})
        self.assertEqual(methods["ApiMethod"]["AuthorizationType"], {"Fn::If": ["ByIam", "AWS_IAM", "NONE"]})
        self.assertEqual(methods["ApiWritersMethod"]["AuthorizationType"], "NONE")
        writers = resources[methods["ApiWritersMethod"]["ResourceId"]["Ref"]]
        self.assertEqual(writers["PathPart"], "{proxy+}")
        self.assertEqual(resources[writers["ParentId"]["Ref"]]["PathPart"], "w")

    def test_the_function_trusts_the_gateway_only_where_it_checks(self):
        variables = of_type("AWS::Serverless::Function")["PushApi"]["Environment"]["Variables"]
        self.assertEqual(variables["LAKEBELL_API_AUTHORIZATION"], {"Ref": "ApiAuthorization"})
        self.assertEqual(TEMPLATE["Parameters"]["ApiAuthorization"]["Default"], "TOKEN")

    def test_changing_the_authorization_deploys_anew(self):
        deployments = {name: RESOURCES[name]["Condition"] for name in of_type("AWS::ApiGateway::Deployment")}
        self.assertEqual(deployments, {"ApiDeploymentByToken": "ByToken", "ApiDeploymentByIam": "ByIam"})
        stage = of_type("AWS::ApiGateway::Stage")["ApiStage"]["DeploymentId"]
        self.assertEqual(stage, {"Fn::If": ["ByIam", {"Ref": "ApiDeploymentByIam"}, {"Ref": "ApiDeploymentByToken"}]})
        for name in deployments:
            waits = set(RESOURCES[name]["DependsOn"])
            self.assertTrue(waits >= set(of_type("AWS::ApiGateway::Method")), name)
            self.assertTrue(waits >= set(of_type("AWS::ApiGateway::GatewayResponse")), name)

    def test_the_gateway_throttles(self):
        settings = of_type("AWS::ApiGateway::Stage")["ApiStage"]["MethodSettings"]
        self.assertEqual(settings[0]["ThrottlingRateLimit"], {"Ref": "ApiRateLimit"})
        self.assertEqual(settings[0]["ThrottlingBurstLimit"], {"Ref": "ApiBurstLimit"})

    def test_what_the_gateway_answers_itself_makes_writers_send_again(self):
        answers = {answer["ResponseType"]: answer for answer in of_type("AWS::ApiGateway::GatewayResponse").values()}
        self.assertEqual(set(answers), {"THROTTLED", "DEFAULT_5XX"})
        for answer in answers.values():
            self.assertEqual(answer["StatusCode"], "503")
            self.assertIn("gatewayresponse.header.Retry-After", answer["ResponseParameters"])

    def test_paths_are_not_logged_because_some_hold_a_token(self):
        for name, stage in of_type("AWS::ApiGateway::Stage").items():
            self.assertNotIn("AccessLogSetting", stage, name)
            for settings in stage["MethodSettings"]:
                self.assertNotIn("LoggingLevel", settings, name)


class Notifications(unittest.TestCase):
    """What S3 is asked for."""

    def test_no_filter_holds_an_equals_sign(self):
        filters = [*found(RESOURCES, "EventPattern"), *found(RESOURCES, "S3Key")]
        self.assertTrue(filters)
        for value in filters:
            self.assertNotIn("=", json.dumps(value))

    def test_every_way_of_creating_an_object_is_heard_of(self):
        # Writers put, copy (pypaimon, Hadoop's rename) and complete multipart uploads (pyiceberg): never one reason alone.
        detail = RESOURCES["LakeRule"]["Properties"]["EventPattern"]["detail"]
        self.assertEqual(set(detail), {"object"})
        events = list(found(RESOURCES["LakeBucket"], "Event"))
        self.assertEqual(events, ["s3:ObjectCreated:*"])

    def test_no_bucket_parameter_takes_an_equals_sign(self):
        pattern = re.compile(TEMPLATE["Parameters"]["LakeBucketArns"]["AllowedPattern"])
        for good in ("", "arn:aws:s3:::lake", "arn:aws:s3:::lake,arn:aws-cn:s3:::other.lake"):
            self.assertTrue(pattern.search(good), good)
        for bad in ("lake", "arn:aws:s3:::a=b", "arn:aws:s3:::a, arn:aws:s3:::b", "arn:aws:s3:::a/*"):
            self.assertFalse(pattern.search(bad), bad)

    def test_the_rule_lets_metadata_through_and_data_not(self):
        patterns = [p.get("wildcard") or "*" + p["suffix"] for p in next(found(RESOURCES["LakeRule"], "key"))]
        expressions = [re.compile(".*".join(map(re.escape, pattern.split("*"))) + r"\Z") for pattern in patterns]
        for key, expected in {
            "db.db/t/snapshot/snapshot-12": True,
            "db.db/t/branch/branch-b1/snapshot/snapshot-1": True,
            "snapshot/snapshot-1": True,
            "db.db/t/schema/schema-0": True,
            "db.db/t/tag/tag-2026-11-30": True,
            "db.db/t/bucket-0/data-1.parquet": False,
            "db.db/t/dt=2026-11-30/bucket-0/data-1.orc": False,
            "db.db/t/manifest/manifest-list-1": False,
            "db.db/t/snapshot/.snapshot-3.1234.tmp": False,
            "db/t/_delta_log/00000000000000000042.json": True,
            "db/t/_delta_log/00000000000000000042.crc": False,
            "db/t/_delta_log/00000000000000000042.checkpoint.parquet": False,
            "db/t/_delta_log/_last_checkpoint": False,
            "db/t/_delta_log/_staged_commits/00000000000000000042.6f1d0d4f-2a0b-4d0e-9d4a-9a1c2c7b1f10.json": False,
            "db/t/metadata/00017-6f1d0d4f-2a0b-4d0e-9d4a-9a1c2c7b1f10.metadata.json": True,
            "db/t/metadata/v3.gz.metadata.json": True,
            "db/t/metadata/v3.metadata.json.gz": True,
            "db/t/metadata/version-hint.text": False,
            "db/t/metadata/snap-1-1-6f1d0d4f-2a0b-4d0e-9d4a-9a1c2c7b1f10.avro": False,
            "db/t/.hoodie/20240418172802262.commit": True,
            "db/t/.hoodie/20240418172802262.commit.requested": False,
            "db/t/.hoodie/20240418172802262.inflight": False,
            "db/t/.hoodie/timeline/20240418172802262_20240418172804.deltacommit": True,
            "db/t/.hoodie/timeline/20240418172802262_20240418172804.restore": True,
            "db/t/.hoodie/timeline/20240418172802262.clustering.inflight": False,
            "db/t/.hoodie/hoodie.properties": False,
        }.items():
            self.assertEqual(any(e.match(key) for e in expressions), expected, key)


class State(unittest.TestCase):
    """The table."""

    def test_indexes_hold_keys_only_and_the_table_can_be_restored(self):
        table = of_type("AWS::DynamoDB::Table")["Table"]
        indexes = {i["IndexName"]: i["Projection"]["ProjectionType"] for i in table["GlobalSecondaryIndexes"]}
        self.assertEqual(indexes, {"sweep": "KEYS_ONLY", "history": "KEYS_ONLY"})
        self.assertTrue(table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"])
        self.assertEqual(table["TimeToLiveSpecification"], {"AttributeName": "ttl", "Enabled": True})
        self.assertEqual(RESOURCES["Table"]["DeletionPolicy"], "Retain")


if __name__ == "__main__":
    unittest.main()
