//! Properties of shape inference for arbitrary inputs: it never panics, and with less information, the result is never
//! different, only less known.

use oarlock_core::infer::{InferenceRequest, PartialDim, PartialDims, TensorFact, infer_facts};
use oarlock_core::schema::{self, AttributeKind, OpSchema};
use oarlock_core::{Attribute, Attributes, Constant, Dtype};

/// A random generator with a fixed sequence.
struct RandomCases(u64);

impl RandomCases {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below_limit(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    fn choose_one<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below_limit(choices.len())]
    }

    /// Mostly small numbers that ops accept.
    fn random_int(&mut self) -> i64 {
        match self.below_limit(24) {
            0 => self.choose_one(&[
                i64::MIN,
                i64::MIN + 1,
                i64::MAX,
                i64::MAX - 1,
                1 << 40,
                -(1 << 40),
                1 << 62,
            ]),
            1 => self.next() as i64,
            2..=6 => self.choose_one(&[-1, -2, 0]),
            _ => self.choose_one(&[1, 1, 2, 2, 2, 3, 4, 6]),
        }
    }

    fn random_ints(&mut self) -> Vec<i64> {
        (0..self.below_limit(7)).map(|_| self.random_int()).collect()
    }

    fn random_float(&mut self) -> f64 {
        match self.below_limit(8) {
            0 => self.choose_one(&[f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, 1e-300]),
            _ => self.choose_one(&[0.5, 1.0, 2.0, 1.5]),
        }
    }

    fn random_value(&mut self, dtype: Dtype) -> Option<Constant> {
        let numbers = if self.below_limit(3) == 0 { vec![self.random_int()] } else { self.random_ints() };
        let dims =
            if numbers.len() == 1 && self.below_limit(2) == 0 { vec![] } else { vec![numbers.len() as i64] };
        let bytes: Vec<u8> = match dtype {
            Dtype::I64 => numbers.iter().flat_map(|int| int.to_ne_bytes()).collect(),
            Dtype::I32 => numbers.iter().flat_map(|int| (*int as i32).to_ne_bytes()).collect(),
            Dtype::F32 => numbers.iter().flat_map(|_| (self.random_float() as f32).to_ne_bytes()).collect(),
            Dtype::F64 => numbers.iter().flat_map(|_| self.random_float().to_ne_bytes()).collect(),
            _ => return None,
        };
        Constant::new(dtype, &dims, bytes).ok()
    }

    fn random_fact(&mut self, dtype: Dtype, rank: usize) -> TensorFact {
        if self.below_limit(4) == 0
            && let Some(value) = self.random_value(dtype)
        {
            return TensorFact::from_value(value);
        }
        if self.below_limit(40) == 0 {
            return TensorFact::from_dtype(dtype);
        }
        let rank = if self.below_limit(3) == 0 { self.choose_one(&[0, 1, 2, 3, 4, 5, 70]) } else { rank };
        let dim = |random: &mut Self| match random.below_limit(60) {
            0 => PartialDim::Known(random.random_int()),
            1 => PartialDim::Unknown,
            _ => PartialDim::Known(random.choose_one(&[1, 2, 2, 2, 4])),
        };
        TensorFact {
            dims: Some((0..rank).map(|_| dim(self)).collect::<PartialDims>()),
            ..TensorFact::from_dtype(dtype)
        }
    }

    fn random_text(&mut self) -> String {
        let texts = [
            "",
            "SAME_UPPER",
            "VALID",
            "none",
            "bidirectional",
            "ij,jk->ik",
            "...i,i...",
            "i...j->...",
            "ii,->i",
            "a,b->ba",
            "not_smaller",
            "tf_crop_and_resize",
            "reflect",
            "FLOAT",
            "é->",
        ];
        self.choose_one(&texts).into()
    }

    fn random_attribute(&mut self, kind: AttributeKind) -> Option<Attribute> {
        Some(match kind {
            AttributeKind::Int => Attribute::Int(self.random_int()),
            AttributeKind::Ints => Attribute::Ints(self.random_ints()),
            AttributeKind::Float => Attribute::Float(self.random_float()),
            AttributeKind::Floats => {
                Attribute::Floats((0..self.below_limit(6)).map(|_| self.random_float()).collect())
            }
            AttributeKind::String => Attribute::String(self.random_text()),
            AttributeKind::Tensor => Attribute::Tensor(self.random_value(Dtype::F32)?),
            _ => return None,
        })
    }

    fn random_call(
        &mut self,
        schema: &OpSchema,
    ) -> (Attributes, Vec<Option<TensorFact>>, Vec<Option<Dtype>>) {
        let mut attributes = Attributes::new();
        for attribute in &schema.attributes {
            let result = if self.below_limit(3) == 0 {
                self.random_attribute(attribute.kind)
            } else {
                attribute.default.clone()
            };
            result.into_iter().for_each(|result| attributes.set(attribute.name, result));
        }
        let most = schema.max_inputs().unwrap_or(7);
        let count = if self.below_limit(16) == 0 {
            self.below_limit(most + 2)
        } else {
            most.max(schema.min_inputs())
        };
        let rank = self.choose_one(&[1, 2, 2, 3, 3, 4]);
        let inputs = (0..count).map(|index| {
            let is_required = index < schema.min_inputs();
            if self.below_limit(if is_required { 60 } else { 2 }) == 0 {
                return None;
            }
            let formal = schema.formal_input(index);
            let allowed =
                formal.map_or(Default::default(), |formal| schema.types[formal.type_index].allowed.dtypes());
            let usual = [Dtype::F32, Dtype::I64].into_iter().find(|dtype| dtype.is_in(allowed));
            Some(self.random_fact(usual.unwrap_or(Dtype::I32), rank))
        });
        let inputs = inputs.collect();
        let outputs = self.below_limit(schema.max_outputs().unwrap_or(4) + 1) + self.below_limit(2);
        (attributes, inputs, vec![Some(Dtype::F32); outputs])
    }

    /// A fact with some of its information removed.
    fn forget_some(&mut self, fact: &TensorFact) -> TensorFact {
        let mut less = fact.clone();
        if self.below_limit(4) == 0 {
            less.value = None;
        }
        match self.below_limit(6) {
            0 => less.dims = None,
            1 => {}
            _ => {
                let dims = less.dims.iter_mut().flatten();
                dims.filter(|_| self.below_limit(2) == 0).for_each(|dim| *dim = PartialDim::Unknown);
            }
        }
        less
    }
}

fn contradicts_fact(more: &TensorFact, less: &TensorFact) -> bool {
    let (Some(more), Some(less)) = (&more.dims, &less.dims) else { return false };
    more.len() != less.len() || more.iter().zip(less).any(|(more, less)| !more.may_equal(*less))
}

#[test]
fn nothing_panics_and_knowing_less_contradicts_nothing() {
    let mut random = RandomCases(0x9e37_79b9_7f4a_7c15);
    let (mut good, mut bad) = (0u32, 0u32);
    for schema in schema::all_schemas().unwrap().map(Result::unwrap) {
        for _ in 0..ROUNDS {
            let (attributes, inputs, outputs) = random.random_call(schema);
            let (domain, op, version) = (schema.domain, schema.name, schema.since_version);
            let call = InferenceRequest {
                domain,
                op,
                version,
                attributes: &attributes,
                inputs: &inputs,
                outputs: &outputs,
            };
            let Ok(facts) = infer_facts(&call) else {
                bad += 1;
                continue;
            };
            good += 1;
            assert_eq!(facts.len(), outputs.len(), "{call:?}");
            let sizes = facts.iter().filter_map(|fact| fact.dims.as_ref()).flatten();
            assert!(
                sizes.clone().all(|dim| dim.known_size().is_none_or(|size| size >= 0)),
                "{call:?}: {facts:?}"
            );
            let forgotten: Vec<_> =
                inputs.iter().map(|input| input.as_ref().map(|fact| random.forget_some(fact))).collect();
            let less = infer_facts(&InferenceRequest { inputs: &forgotten, ..call });
            let less =
                less.unwrap_or_else(|error| panic!("{call:?} is good, but {forgotten:?} is not: {error}"));
            for (more, less) in facts.iter().zip(&less) {
                assert!(
                    !contradicts_fact(more, less),
                    "{call:?} gives {more:?}, but {forgotten:?} gives {less:?}"
                );
            }
        }
    }
    assert!(good > 10_000 && bad > 10_000, "{good} and {bad}");
}

/// The number of random calls for each version of each op.
const ROUNDS: usize = 100;
