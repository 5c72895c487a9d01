//! Descriptions of the fields that every object has: what `kubectl explain` says about them.

pub(super) const API_VERSION: &str =
    "APIVersion defines the group and version of the schema in which this object is written.";
pub(super) const KIND: &str = "Kind is the type of this object, in CamelCase. It cannot be changed.";
pub(super) const METADATA: &str = "Standard object's metadata: its name and namespace, labels, annotations, owners, and what the server notes about it.";

/// The description of a field of the metadata.
pub(super) fn of_metadata(field: &str) -> Option<&'static str> {
    Some(match field {
        "annotations" => {
            "Annotations are texts that programs keep with the object. Objects cannot be selected by them."
        }
        "creationTimestamp" => {
            "CreationTimestamp is a timestamp of when the server created the object. Clients cannot set it."
        }
        "deletionGracePeriodSeconds" => {
            "Seconds that the object may take to end its work after it was deleted. Set by the server."
        }
        "deletionTimestamp" => {
            "DeletionTimestamp is the time at which the object will go, set by the server when a client deletes it. The \
             object stays until its finalizers are gone."
        }
        "finalizers" => {
            "Finalizers keep a deleted object until each of them is removed by the controller that added it."
        }
        "generateName" => {
            "GenerateName is the beginning of a name that the server completes, if no name is given."
        }
        "generation" => {
            "Generation counts the changes to the desired state of the object. Set by the server."
        }
        "labels" => "Labels are keys and values by which the object can be selected.",
        "managedFields" => "ManagedFields says which client manages which fields, for server-side apply.",
        "name" => "Name identifies the object within its namespace. It cannot be changed.",
        "namespace" => "Namespace is the space within which the name of the object is unique.",
        "ownerReferences" => {
            "Objects that this object depends on. When all of them are gone, the garbage collector deletes this object."
        }
        "resourceVersion" => {
            "ResourceVersion is the state of the object in the store. A write that names another one is refused. Set by \
             the server."
        }
        "selfLink" => "SelfLink is no longer set.",
        "uid" => "UID is unique to this object in time and space. Set by the server.",
        _ => return None,
    })
}
