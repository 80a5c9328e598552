#!/usr/bin/env python3
"""Deploy infra/template.yaml to a local AWS and print what came of it as one JSON object.

    deploy.py --endpoint URL --region R --template FILE --packages DIR --stack NAME [NAME=VALUE ...]

The template is deployed as it is, except for what `sam package` changes as well: each function's CodeUri becomes the
uploaded zip (DIR/<binary>.zip, the binary by the template's own build properties). Creates the stack or updates it.
"""

import argparse
import hashlib
import json
import pathlib
import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from samtranslator.yaml_helper import yaml_parse

ARTIFACTS = "lakebell-deployment-artifacts"
SERVERLESS_FUNCTION = "AWS::Serverless::Function"


def client(args: argparse.Namespace, service: str):
    """A client that fails fast and with credentials that only an emulator takes."""
    return boto3.client(
        service,
        endpoint_url=args.endpoint,
        region_name=args.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"max_attempts": 1}, read_timeout=120, s3={"addressing_style": "path"}),
    )


def packaged_template(args: argparse.Namespace) -> str:
    """The template as JSON, with the functions' code uploaded and named."""
    template = yaml_parse(pathlib.Path(args.template).read_text(encoding="utf-8"))
    s3 = client(args, "s3")
    s3.create_bucket(Bucket=ARTIFACTS)
    for name, resource in template["Resources"].items():
        if resource["Type"] != SERVERLESS_FUNCTION:
            continue
        binary = resource["Metadata"]["BuildProperties"]["Binary"]
        package = pathlib.Path(args.packages) / f"{binary}.zip"
        if not package.is_file():
            sys.exit(f"{package} is missing: `cargo xtask package` makes it (function {name})")
        code = package.read_bytes()
        key = f"{binary}/{hashlib.sha256(code).hexdigest()}.zip"
        s3.put_object(Bucket=ARTIFACTS, Key=key, Body=code)
        # MiniStack reports success for code that is not there, so look.
        s3.head_object(Bucket=ARTIFACTS, Key=key)
        resource["Properties"]["CodeUri"] = {"Bucket": ARTIFACTS, "Key": key}
    template["Globals"]["Function"].pop("CodeUri", None)
    return json.dumps(template)


def deploy(args: argparse.Namespace) -> None:
    """Create the stack, or update the one that is there, and wait for the end."""
    cloudformation = client(args, "cloudformation")
    call = {
        "StackName": args.stack,
        "TemplateBody": packaged_template(args),
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value}
            for key, _, value in (parameter.partition("=") for parameter in args.parameters)
        ],
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    }
    try:
        cloudformation.create_stack(**call)
    except ClientError as error:
        if error.response["Error"]["Code"] != "AlreadyExistsException":
            raise
        try:
            cloudformation.update_stack(**call)
        except ClientError as update_error:
            if "No updates" not in str(update_error):
                raise
            return
    deadline = time.monotonic() + args.timeout
    while True:
        status = cloudformation.describe_stacks(StackName=args.stack)["Stacks"][0]["StackStatus"]
        if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            return
        if not status.endswith("_IN_PROGRESS") or time.monotonic() > deadline:
            events = cloudformation.describe_stack_events(StackName=args.stack)["StackEvents"]
            reasons = [
                f"  {event['LogicalResourceId']}: {event['ResourceStatusReason']}"
                for event in events
                if event.get("ResourceStatusReason") and "FAILED" in event["ResourceStatus"]
            ]
            sys.exit("\n".join([f"the stack ended as {status}:", *reasons]))
        time.sleep(0.1)


def result(args: argparse.Namespace) -> dict:
    """The stack's outputs, and the API token, which is in none of them."""
    stack = client(args, "cloudformation").describe_stacks(StackName=args.stack)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    secret = client(args, "secretsmanager").get_secret_value(SecretId=outputs["ApiTokenSecretName"])
    return {"outputs": outputs, "apiToken": secret["SecretString"]}


def main() -> None:
    """Read the arguments, deploy, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("endpoint", "region", "template", "packages", "stack"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("parameters", nargs="*", metavar="NAME=VALUE")
    args = parser.parse_args()
    deploy(args)
    json.dump(result(args), sys.stdout)


if __name__ == "__main__":
    main()
