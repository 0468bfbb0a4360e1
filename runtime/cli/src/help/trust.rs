//! The ends of the help texts about signatures and keys.

pub(crate) const SIGN_EXAMPLES: &str = "\
Examples:
  oarlock plugin manifest libacme.so --write
  oarlock plugin sign libacme.so --key acme.key
  oarlock plugin sign libacme.so --key new.key --key old.key    While users change to the new key

The signature covers the manifest, which has the hashes of the plugin and of the libraries that are shipped with it. The command \
writes `libacme.oarlock.sig`, and refuses if a hash is missing or wrong. A changed file needs a new manifest and a new signature.

Exit codes:
  0  The plugin is signed
  1  It is not; the output says why
  2  Invalid arguments";

pub(crate) const VERIFY_EXAMPLES: &str = "\
Examples:
  oarlock plugin verify libacme.so                   By the keys that you trust
  oarlock plugin verify libacme.so --key acme.pem    By this key alone
  oarlock plugin verify libacme.so --json | jq .signatures

The command says who signed the manifest, and whether the plugin and each library that is shipped with it is the one that was \
signed. Nothing of the plugin runs, and no network is needed.

Exit codes:
  0  A trusted key signed, and every file is as it was signed
  1  Not so; the output says why
  2  Invalid arguments";

pub(crate) const TRUST_EXAMPLES: &str = "\
Examples:
  oarlock plugin trust acme.pem            Trusts what Acme signs
  oarlock plugin trust acme-2.successor    Trusts the key that follows one that you trust
  oarlock plugin trust acme.revoked        Refuses everything that only this key signed
  oarlock plugin trust --list
  oarlock plugin trust --remove 5bd6f1c0
  sudo oarlock plugin trust --system acme.pem

Compare the fingerprint that the command prints with one that you know from the vendor by another way. Trusted keys and revocations \
are files in `keys`, beside the configuration file.

Exit codes:
  0  It is done
  1  It is not; the output says why
  2  Invalid arguments";

pub(crate) const KEY_EXAMPLES: &str = "\
Examples:
  oarlock plugin key new acme
  oarlock plugin key rotate acme.key acme-2
  oarlock plugin key revoke acme.key
  oarlock plugin key show acme.pem

Keys are ed25519 in PEM files; OpenSSL makes and reads the same. No command overwrites a key.";

pub(crate) const KEY_NEW_EXAMPLES: &str = "\
Example:
  oarlock plugin key new acme    Writes `acme.key` and `acme.pem`

Keep the private key secret, and keep a copy where it cannot get lost. Publish the public key and its fingerprint.";

pub(crate) const KEY_ROTATE_EXAMPLES: &str = "\
Example:
  oarlock plugin key rotate acme.key acme-2    Writes `acme-2.key`, `acme-2.pem` and `acme-2.successor`

Both keys sign the statement `acme-2.successor`. Publish it: with `oarlock plugin trust`, whoever trusts the old key then trusts the \
new one too. Until all have done so, sign releases with both keys.";

pub(crate) const KEY_REVOKE_EXAMPLES: &str = "\
Example:
  oarlock plugin key revoke acme.key    Writes `acme.revoked`

Publish the statement if somebody else may have the key. Whoever hands it to `oarlock plugin trust` refuses everything that only \
this key signed. Make it along with the key, and keep it in a safe place: without the key, nobody can make it.";

pub(crate) const KEY_SHOW_EXAMPLES: &str = "\
Examples:
  oarlock plugin key show acme.pem
  openssl pkey -pubin -in acme.pem -outform DER | sha256sum    Prints the same";
