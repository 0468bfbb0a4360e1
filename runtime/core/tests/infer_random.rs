//! What holds of inference whatever it is given: it never panics, and knowing less never makes it say anything else.

use oarlock_core::infer::{Dim, Fact, Inference, PartialDims, infer};
use oarlock_core::schema::{self, AttributeKind, Schema};
use oarlock_core::{Attribute, Attributes, Constant, Dtype};

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Mostly a number that ops can do something with.
    fn int(&mut self) -> i64 {
        match self.below(24) {
            0 => self.one_of(&[i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1, 1 << 40, -(1 << 40), 1 << 62]),
            1 => self.next() as i64,
            2..=6 => self.one_of(&[-1, -2, 0]),
            _ => self.one_of(&[1, 1, 2, 2, 2, 3, 4, 6]),
        }
    }

    fn ints(&mut self) -> Vec<i64> {
        (0..self.below(7)).map(|_| self.int()).collect()
    }

    fn float(&mut self) -> f64 {
        match self.below(8) {
            0 => self.one_of(&[f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, 1e-300]),
            _ => self.one_of(&[0.5, 1.0, 2.0, 1.5]),
        }
    }

    fn value(&mut self, dtype: Dtype) -> Option<Constant> {
        let numbers = if self.below(3) == 0 { vec![self.int()] } else { self.ints() };
        let dims = if numbers.len() == 1 && self.below(2) == 0 { vec![] } else { vec![numbers.len() as i64] };
        let bytes: Vec<u8> = match dtype {
            Dtype::I64 => numbers.iter().flat_map(|int| int.to_ne_bytes()).collect(),
            Dtype::I32 => numbers.iter().flat_map(|int| (*int as i32).to_ne_bytes()).collect(),
            Dtype::F32 => numbers.iter().flat_map(|_| (self.float() as f32).to_ne_bytes()).collect(),
            Dtype::F64 => numbers.iter().flat_map(|_| self.float().to_ne_bytes()).collect(),
            _ => return None,
        };
        Constant::new(dtype, &dims, bytes).ok()
    }

    fn fact(&mut self, dtype: Dtype, rank: usize) -> Fact {
        if self.below(4) == 0
            && let Some(value) = self.value(dtype)
        {
            return Fact::of_value(value);
        }
        if self.below(40) == 0 {
            return Fact::of_dtype(dtype);
        }
        let rank = if self.below(3) == 0 { self.one_of(&[0, 1, 2, 3, 4, 5, 70]) } else { rank };
        let dim = |random: &mut Self| match random.below(60) {
            0 => Dim::Known(random.int()),
            1 => Dim::Unknown,
            _ => Dim::Known(random.one_of(&[1, 2, 2, 2, 4])),
        };
        Fact { dims: Some((0..rank).map(|_| dim(self)).collect::<PartialDims>()), ..Fact::of_dtype(dtype) }
    }

    fn text(&mut self) -> String {
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
        self.one_of(&texts).into()
    }

    fn attribute(&mut self, kind: AttributeKind) -> Option<Attribute> {
        Some(match kind {
            AttributeKind::Int => Attribute::Int(self.int()),
            AttributeKind::Ints => Attribute::Ints(self.ints()),
            AttributeKind::Float => Attribute::Float(self.float()),
            AttributeKind::Floats => Attribute::Floats((0..self.below(6)).map(|_| self.float()).collect()),
            AttributeKind::String => Attribute::String(self.text()),
            AttributeKind::Tensor => Attribute::Tensor(self.value(Dtype::F32)?),
            _ => return None,
        })
    }

    fn call(&mut self, schema: &Schema) -> (Attributes, Vec<Option<Fact>>, Vec<Option<Dtype>>) {
        let mut attributes = Attributes::new();
        for attribute in &schema.attributes {
            let made =
                if self.below(3) == 0 { self.attribute(attribute.kind) } else { attribute.default.clone() };
            made.into_iter().for_each(|made| attributes.set(attribute.name, made));
        }
        let most = schema.max_inputs().unwrap_or(7);
        let count = if self.below(16) == 0 { self.below(most + 2) } else { most.max(schema.min_inputs()) };
        let rank = self.one_of(&[1, 2, 2, 3, 3, 4]);
        let inputs = (0..count).map(|index| {
            let is_required = index < schema.min_inputs();
            if self.below(if is_required { 60 } else { 2 }) == 0 {
                return None;
            }
            let formal = schema.formal_input(index);
            let allowed =
                formal.map_or(Default::default(), |formal| schema.types[formal.type_index].allowed.dtypes());
            let usual = [Dtype::F32, Dtype::I64].into_iter().find(|dtype| dtype.is_in(allowed));
            Some(self.fact(usual.unwrap_or(Dtype::I32), rank))
        });
        let inputs = inputs.collect();
        let outputs = self.below(schema.max_outputs().unwrap_or(4) + 1) + self.below(2);
        (attributes, inputs, vec![Some(Dtype::F32); outputs])
    }

    /// The same with less known.
    fn forget(&mut self, fact: &Fact) -> Fact {
        let mut less = fact.clone();
        if self.below(4) == 0 {
            less.value = None;
        }
        match self.below(6) {
            0 => less.dims = None,
            1 => {}
            _ => {
                let dims = less.dims.iter_mut().flatten();
                dims.filter(|_| self.below(2) == 0).for_each(|dim| *dim = Dim::Unknown);
            }
        }
        less
    }
}

fn contradict(more: &Fact, less: &Fact) -> bool {
    let (Some(more), Some(less)) = (&more.dims, &less.dims) else { return false };
    more.len() != less.len() || more.iter().zip(less).any(|(more, less)| !more.agrees(*less))
}

#[test]
fn nothing_panics_and_knowing_less_contradicts_nothing() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut good, mut bad) = (0u32, 0u32);
    for schema in schema::all().unwrap().map(Result::unwrap) {
        for _ in 0..ROUNDS {
            let (attributes, inputs, outputs) = random.call(schema);
            let (domain, op, version) = (schema.domain, schema.name, schema.since_version);
            let call = Inference {
                domain,
                op,
                version,
                attributes: &attributes,
                inputs: &inputs,
                outputs: &outputs,
            };
            let Ok(facts) = infer(&call) else {
                bad += 1;
                continue;
            };
            good += 1;
            assert_eq!(facts.len(), outputs.len(), "{call:?}");
            let sizes = facts.iter().filter_map(|fact| fact.dims.as_ref()).flatten();
            assert!(sizes.clone().all(|dim| dim.known().is_none_or(|size| size >= 0)), "{call:?}: {facts:?}");
            let forgotten: Vec<_> =
                inputs.iter().map(|input| input.as_ref().map(|fact| random.forget(fact))).collect();
            let less = infer(&Inference { inputs: &forgotten, ..call });
            let less =
                less.unwrap_or_else(|error| panic!("{call:?} is good, but {forgotten:?} is not: {error}"));
            for (more, less) in facts.iter().zip(&less) {
                assert!(!contradict(more, less), "{call:?} gives {more:?}, but {forgotten:?} gives {less:?}");
            }
        }
    }
    assert!(good > 10_000 && bad > 10_000, "{good} and {bad}");
}

/// How many calls are made up for each version of each op.
const ROUNDS: usize = 100;
