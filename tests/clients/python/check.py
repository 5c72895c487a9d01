"""What the official Python client sees of a cluster: `check.py KUBECONFIG` prints one line for each thing it did."""

import sys
import threading

from kubernetes import client, config, watch

NAMESPACE = "python"


def main(kubeconfig):
    config.load_kube_config(kubeconfig)
    core, custom = client.CoreV1Api(), client.CustomObjectsApi()
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))

    seen = []
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    watcher = threading.Thread(target=follow, args=(core, start, seen), daemon=True)
    watcher.start()

    metadata = client.V1ObjectMeta(name="a", labels={"app": "x"})
    made = core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=metadata, data={"k": "v"}))
    print("created", made.metadata.name, made.data)
    listed = core.list_namespaced_config_map(NAMESPACE, label_selector="app=x")
    print("listed", [item.metadata.name for item in listed.items])
    patched = core.patch_namespaced_config_map("a", NAMESPACE, {"data": {"k": "w"}})
    print("patched", patched.data)
    made.data = {"k": "stale"}
    print("stale:", refused(core.replace_namespaced_config_map, "a", NAMESPACE, made))
    core.delete_namespaced_config_map("a", NAMESPACE)
    print("missing:", refused(core.read_namespaced_config_map, "a", NAMESPACE))
    watcher.join(timeout=30)
    print("watched", seen)

    jobs = ("batch.volcano.sh", "v1alpha1", NAMESPACE, "jobs")
    custom.create_namespaced_custom_object(*jobs, job("j"))
    print("jobs", [item["metadata"]["name"] for item in custom.list_namespaced_custom_object(*jobs)["items"]])
    print("wrong job:", refused(custom.create_namespaced_custom_object, *jobs, job("J")))
    custom.delete_namespaced_custom_object(*jobs, "j")


def follow(core, start, seen):
    """Notes what happens to ConfigMaps, but for the cluster's own, until one goes."""
    ours = {"field_selector": "metadata.name!=kube-root-ca.crt", "resource_version": start}
    events = watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, timeout_seconds=60, **ours)
    for event in events:
        seen.append(event["type"])
        if event["type"] == "DELETED":
            return


def job(name):
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "any", "command": ["true"]}]}
    tasks = [{"name": "work", "replicas": 1, "template": {"spec": spec}}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "tasks": tasks},
    }


def refused(call, *arguments):
    """The code with which a call is refused."""
    try:
        call(*arguments)
    except client.ApiException as error:
        return error.status
    return "not refused"


main(sys.argv[1])
