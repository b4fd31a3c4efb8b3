//! Settings from several places, and settings that are refused.

use super::*;

fn layer(text: &str) -> Layer {
    toml::from_str(text).unwrap()
}

fn code(layer: Layer) -> &'static str {
    Settings::from_layers([layer]).unwrap_err().code()
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let flags = layer("listen = '127.0.0.1:1'");
    let variables = [("listen", "127.0.0.1:2"), ("requests_max", "7"), ("body_timeout", "3s"), ("data", "/env")];
    let environment =
        Layer::from_environment(&variables.map(|(name, value)| (name.to_owned(), value.to_owned()))).unwrap();
    let file = layer("listen = '127.0.0.1:3'\nrequests_max = 8\ndata = '/file'\nbehind_proxy = true");

    let settings = Settings::from_layers([flags, environment, file]).unwrap();

    assert_eq!(settings.listen.port(), 1);
    assert_eq!(settings.requests_max, 7);
    assert_eq!(settings.body_timeout, Duration::from_secs(3));
    assert_eq!(settings.data, PathBuf::from("/env"));
    assert!(settings.behind_proxy);
}

#[test]
fn nobody_but_this_machine_is_let_in_without_tls() {
    assert_eq!(code(layer("data = 'd'\nlisten = '0.0.0.0:1'")), "TLS_REQUIRED");
    assert_eq!(code(layer("data = 'd'\nadmin_listen = '[::]:1'")), "TLS_REQUIRED");
    assert!(Settings::from_layers([layer("data = 'd'\nlisten = '0.0.0.0:1'\nbehind_proxy = true")]).is_ok());
    let with_tls = "data = 'd'\nlisten = '0.0.0.0:1'\ntls_cert = 'c'\ntls_key = 'k'";
    assert!(Settings::from_layers([layer(with_tls)]).is_ok());
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    assert_eq!(code(layer("")), "DATA_MISSING");
    assert_eq!(code(layer("data = 'd'\ntls_cert = 'c'")), "TLS_SETTINGS_CONFLICT");
    let twice = "data = 'd'\ntls_cert = 'c'\ntls_key = 'k'\nbehind_proxy = true";
    assert_eq!(code(layer(twice)), "TLS_SETTINGS_CONFLICT");
}

#[test]
fn a_setting_that_does_not_exist_is_refused_wherever_it_is_written() {
    let variable = [("lisen".to_owned(), "127.0.0.1:1".to_owned())];

    let error = Layer::from_environment(&variable).unwrap_err();

    assert_eq!(error.code(), "SERVE_CONFIG_INVALID");
    assert!(error.to_string().contains("lisen"), "{error}");
    assert!(toml::from_str::<Layer>("lisen = '127.0.0.1:1'").is_err());
}
