//! What a model computes less exactly than it says, because it was allowed to, and how far that leads.

use std::collections::BTreeMap;

use oarlock_engine::{Datum, Plan, Precision, Rounding, Session, SessionOptions};
use serde::Serialize;

use super::difference::largest_difference;
use super::{Subject, show, wait};
use crate::arguments::Global;
use crate::output;
use crate::problem::Problem;
use crate::render::count;

/// How much of a model is rounded.
#[derive(Serialize)]
pub(super) struct Extent {
    precision: &'static str,
    /// How many convolutions and products round what they multiply.
    rounded: usize,
    /// Why the others do not, and how many there are for each reason.
    exact: BTreeMap<String, usize>,
}

/// The same, with what comes of it.
#[derive(Serialize)]
pub(super) struct Accuracy {
    #[serde(flatten)]
    extent: Extent,
    outputs: Vec<Difference>,
}

/// How far an output is from the exact one.
#[derive(Serialize)]
struct Difference {
    name: String,
    /// The largest difference of two elements, over the largest element; nothing for what is no tensor of numbers.
    largest_difference: Option<f64>,
}

impl Extent {
    /// Of a plan; nothing where all has to be exact.
    pub(super) fn of(subject: &Subject, plan: &Plan) -> Result<Option<Self>, Problem> {
        if subject.precision == Precision::F32 {
            return Ok(None);
        }
        let Rounding { rounded, whole } = Rounding::of(plan, &subject.core.runtime, subject.device()?);
        let mut exact = BTreeMap::new();
        whole.into_iter().for_each(|reason| *exact.entry(reason).or_default() += 1);
        Ok(Some(Self { precision: subject.precision.name(), rounded, exact }))
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        let Self { precision, rounded, exact } = self;
        let all = count(
            rounded + exact.values().sum::<usize>(),
            "product or convolution",
            "products and convolutions",
        );
        let extent = format!("{precision} in {rounded} of {all} of f32");
        let exact = exact.iter().map(|(reason, count)| format!("not in {count}: {reason}"));
        std::iter::once(extent).chain(exact).collect()
    }
}

impl Accuracy {
    /// Runs the model once more, exactly, and compares; nothing where it was exact.
    pub(super) fn measure(
        subject: &Subject,
        inputs: &[Datum],
        made: &[Datum],
    ) -> Result<Option<Self>, Problem> {
        let Some(extent) = Extent::of(subject, &*subject.session.plan(inputs)?)? else { return Ok(None) };
        show(&subject.progress, "running in f32, to compare …");
        let options = SessionOptions {
            devices: subject.session.devices().to_vec(),
            is_plain: subject.is_plain,
            ..SessionOptions::default()
        };
        let exact = Session::new(subject.core.runtime.clone(), &subject.model, &options)?.run(inputs)?;
        exact.iter().try_for_each(wait)?;
        let slots = subject.session.outputs().iter().zip(made.iter().zip(&exact));
        let outputs = slots.map(|(slot, pair)| {
            let largest_difference = match pair {
                (Datum::Tensor(made), Datum::Tensor(exact)) => largest_difference(made, exact)?,
                _ => None,
            };
            Ok(Difference { name: slot.name.to_string(), largest_difference })
        });
        Ok(Some(Self { extent, outputs: outputs.collect::<Result<_, Problem>>()? }))
    }

    /// What was rounded, and how far each output is from the exact one.
    pub(super) fn sentences(&self) -> Vec<String> {
        let difference = |output: &Difference| {
            let name = oarlock_host::clean_text(&output.name);
            match output.largest_difference {
                Some(0.0) => format!("`{name}` is what it is in f32"),
                Some(difference) => {
                    format!("`{name}` differs from f32 by {difference:.1e} of its largest element at most")
                }
                None => format!("`{name}` cannot be compared with that of f32"),
            }
        };
        self.extent.sentences().into_iter().chain(self.outputs.iter().map(difference)).collect()
    }

    /// Tells the user beside the data.
    pub(super) fn tell(&self, global: &Global) {
        self.sentences().iter().for_each(|sentence| output::say(global.color, "note", sentence, None));
    }
}
