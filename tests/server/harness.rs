//! A server for a test: the real binary on free ports of this machine, and a client that takes every answer as it is.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use ureq::http::{HeaderMap, Method};

use crate::support::tidemill;

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// A data folder, and the server on it while one runs. Dropped, the server is killed.
pub struct Server {
    place: TempDir,
    arguments: Vec<String>,
    settings: Vec<(String, String)>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    api: String,
    admin: String,
}

impl Server {
    /// Starts a server on a new folder.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with further arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        Self::new(arguments.iter().map(|argument| (*argument).to_owned()).collect(), Vec::new())
    }

    /// Starts one with these settings, by their names in the environment.
    pub fn start_where(settings: &[(&str, &str)]) -> Self {
        let variable = |(name, value): &(&str, &str)| (format!("TIDEMILL_SERVE_{name}"), (*value).to_owned());
        Self::new(Vec::new(), settings.iter().map(variable).collect())
    }

    fn new(arguments: Vec<String>, settings: Vec<(String, String)>) -> Self {
        let mut server = Self { place: TempDir::new().unwrap(), arguments, settings, running: None };
        server.restart();
        server
    }

    /// Starts it again on the same folder; it must not run.
    pub fn restart(&mut self) {
        assert!(self.running.is_none(), "the server runs");
        let ports = self.place.path().join("ports.json");
        let _absent = fs::remove_file(&ports);
        let log = fs::File::create(self.place.path().join("log")).unwrap();
        let child = self.command().arg("--ports-file").arg(&ports).stderr(log).spawn().unwrap();
        let mut running = Running { child, api: String::new(), admin: String::new() };
        let started = Instant::now();
        let text = loop {
            if let Ok(text) = fs::read_to_string(&ports) {
                break text;
            }
            let ended = running.child.try_wait().unwrap();
            assert!(ended.is_none() && started.elapsed() < PATIENCE, "no start ({ended:?}): {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        };
        let addresses: Value = serde_json::from_str(&text).unwrap();
        let url = |port: &str| format!("{}://{}", self.scheme(), addresses[port].as_str().unwrap());
        (running.api, running.admin) = (url("api"), url("admin"));
        self.running = Some(running);
    }

    /// The command that runs it.
    pub fn command(&self) -> Command {
        let mut command = tidemill();
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data"]);
        command.arg(self.data()).args(&self.arguments).stdout(Stdio::null());
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    fn scheme(&self) -> &'static str {
        if self.arguments.iter().any(|argument| argument == "--tls-cert") { "https" } else { "http" }
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// What it said so far.
    pub fn log(&self) -> String {
        let mut text = String::new();
        fs::File::open(self.place.path().join("log")).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// Where the API is: `scheme://host:port`.
    pub fn api(&self) -> &str {
        &self.running.as_ref().unwrap().api
    }

    /// Where the API is, if the server runs.
    pub fn running_api(&self) -> Option<&str> {
        self.running.as_ref().map(|running| running.api.as_str())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().child.id()
    }

    /// Where health and metrics are.
    pub fn admin(&self) -> &str {
        &self.running.as_ref().unwrap().admin
    }

    /// The first token.
    pub fn first_token(&self) -> String {
        fs::read_to_string(self.data().join("first-token")).unwrap().trim().to_owned()
    }

    /// A client with the first token.
    pub fn admin_client(&self) -> Client {
        self.client(&self.first_token())
    }

    /// A client with this token.
    pub fn client(&self, token: &str) -> Client {
        Client::new(self.api(), Some(token))
    }

    /// A client without a token.
    pub fn stranger(&self) -> Client {
        Client::new(self.api(), None)
    }

    /// A client of a new tenant's admin.
    pub fn tenant(&self, name: &str) -> Client {
        let made = self.admin_client().post("/v1/tenants", &serde_json::json!({ "name": name }));
        assert_eq!(made.status, 201, "{made:?}");
        self.client(&self.token(name, &serde_json::json!({ "role": "admin" })))
    }

    /// A new token of a tenant.
    pub fn token(&self, tenant: &str, wanted: &Value) -> String {
        let made = self.admin_client().post(&format!("/v1/tenants/{tenant}/tokens"), wanted);
        assert_eq!(made.status, 201, "{made:?}");
        made.body["token"].as_str().unwrap().to_owned()
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        let mut running = self.running.take().unwrap();
        signal(running.child.id(), rustix::process::Signal::TERM);
        let asked = Instant::now();
        loop {
            if let Some(status) = running.child.try_wait().unwrap() {
                return status;
            }
            if asked.elapsed() > PATIENCE {
                running.child.kill().unwrap();
                panic!("the server does not stop: {}", self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it, as a power loss would.
    pub fn kill(&mut self) {
        let mut running = self.running.take().unwrap();
        running.child.kill().unwrap();
        assert_eq!(running.child.wait().unwrap().signal(), Some(9));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ended = running.child.kill();
            let _status = running.child.wait();
        }
        if std::thread::panicking() {
            println!("the server said: {}", self.log());
        }
    }
}

/// Sends a signal.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// What the server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// The text as JSON; null: it is none.
    pub body: Value,
}

impl Answer {
    /// The code of a problem.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The answer, which must have this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }

    /// The answer, which must be a problem with this status and code.
    #[track_caller]
    pub fn expect_problem(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.code()), (status, code), "{self:#?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        self
    }
}

/// Somebody who calls the server.
#[derive(Clone)]
pub struct Client {
    agent: ureq::Agent,
    api: String,
    headers: Vec<(String, String)>,
}

impl Client {
    /// A client of the server at `api`.
    pub fn new(api: &str, token: Option<&str>) -> Self {
        Self::with_agent(agent(ureq::tls::TlsConfig::default()), api, token)
    }

    /// A client that takes this certificate of the server.
    pub fn with_certificate(api: &str, token: Option<&str>, pem: &Path) -> Self {
        let certificate = ureq::tls::Certificate::from_pem(&fs::read(pem).unwrap()).unwrap();
        let tls = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::new_with_certs(&[certificate]));
        Self::with_agent(agent(tls.build()), api, token)
    }

    fn with_agent(agent: ureq::Agent, api: &str, token: Option<&str>) -> Self {
        let client = Self { agent, api: api.to_owned(), headers: Vec::new() };
        match token {
            Some(token) => client.with("authorization", &format!("Bearer {token}")),
            None => client,
        }
    }

    /// The same with a further header.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[])
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[])
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::POST, path, body)
    }

    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::PUT, path, body)
    }

    pub fn patch(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::PATCH, path, body)
    }

    fn json(&self, method: Method, path: &str, body: &Value) -> Answer {
        self.with("content-type", "application/json").send(method, path, body.to_string().as_bytes())
    }

    /// Sends a request.
    pub fn send(&self, method: Method, path: &str, body: &[u8]) -> Answer {
        self.attempt(method, path, body).unwrap()
    }

    /// Sends a request to a server that may go away meanwhile. None: it did.
    pub fn try_send(&self, method: Method, path: &str, body: &[u8]) -> Option<Answer> {
        self.attempt(method, path, body).ok()
    }

    fn attempt(&self, method: Method, path: &str, body: &[u8]) -> Result<Answer, ureq::Error> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.api));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut answer = self.agent.run(request.body(body).unwrap())?;
        let text = answer.body_mut().with_config().limit(64 << 20).read_to_string()?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer { status: answer.status().as_u16(), headers: answer.headers().clone(), text, body })
    }

    /// Uploads a component as the next version of the processor at this path, and waits until it is ready or refused.
    pub fn try_upload(&self, processor: &str, bytes: &[u8]) -> Answer {
        let client = self.with("content-type", "application/wasm");
        client.send(Method::POST, &format!("{processor}/versions?wait=60s"), bytes)
    }

    /// Uploads a component that the server takes.
    pub fn upload(&self, processor: &str, bytes: &[u8]) -> Answer {
        let answer = self.try_upload(processor, bytes);
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
        answer
    }
}

fn agent(tls: ureq::tls::TlsConfig) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .max_redirects(0)
        .proxy(None)
        // A server that refuses a body it has not read closes the connection, which a pool would learn too late.
        .max_idle_connections(0)
        .timeout_global(Some(Duration::from_secs(120)))
        .tls_config(tls);
    config.build().into()
}
