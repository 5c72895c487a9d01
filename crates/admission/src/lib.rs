//! Defaults and validation, pure; shared by the embedded server, the webhook server and the controllers.
