//! The work of the layer: each call is timed, forwarded and recorded.

use std::path::PathBuf;
use std::sync::Arc;

use oarlock_layer::{LayerCall, LayerHost, LayerTarget, LayerWork};
use oarlock_sdk::{LogLevel, Result, abi};

use crate::recorder::TraceRecorder;

/// Where the trace goes if the configuration does not say.
const DEFAULT_FILE: &str = "oarlock-trace.json";

pub(crate) struct TraceWork {
    recorder: TraceRecorder,
}

impl LayerWork for TraceWork {
    const NAME: &'static str = "trace";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    /// The plugin that the calls go to and, for a kernel, its op.
    type Target = Arc<str>;

    fn start_work(host: LayerHost) -> Result<Self> {
        let path = PathBuf::from(host.option("file").unwrap_or(DEFAULT_FILE));
        let recorder = TraceRecorder::create_recorder(&path, host)?;
        host.log(LogLevel::DEBUG, &format!("recording calls into `{}`", path.display()));
        Ok(Self { recorder })
    }

    fn wrap_target(&self, target: LayerTarget<'_>) -> Result<Arc<str>> {
        let Some(op) = target.table.op_name() else { return Ok(target.plugin.into()) };
        // The label goes into JSON unescaped, and vendors may use any characters in op names.
        let op: String = op.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect();
        Ok(format!("{} {op}", target.plugin).into())
    }

    fn around_call(&self, target: &Arc<str>, call: LayerCall<'_>) -> abi::Error {
        let start = self.recorder.elapsed_nanoseconds();
        let failure = call.forward();
        self.recorder.record_call(&call, target, start, failure);
        failure
    }

    fn finish_work(&self, tell: &dyn Fn(LogLevel, &str)) {
        self.recorder.close_file(tell);
    }
}
