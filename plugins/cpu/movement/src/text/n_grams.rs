//! `TfIdfVectorizer`: how often known sequences of words, or of numbers, occur in rows of them.

use oarlock_cpu_base::attributes;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::text_operand::read_texts;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, ensure};
use rustc_hash::FxHashMap;

pub(super) fn n_gram_kernels() -> Vec<Kernel<Cpu>> {
    let items = DtypeSet::STRING.union(DtypeSet::I32).union(DtypeSet::I64);
    let kernel = operand_kernel("TfIdfVectorizer", NGramVectorizer::new, |cpu, vectorizer, operands| {
        vectorizer.run(cpu, operands)
    });
    vec![
        kernel
            .since_version(9)
            .with_inputs([OperandSpec::new(items).with_name("X").with_rank(1, 2)])
            .with_outputs([OperandSpec::new(DtypeSet::F32).with_name("Y").with_rank(1, 2)]),
    ]
}

/// What a sequence does to its column each time it is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NGramMode {
    /// `TF`: adds 1.
    Count,
    /// `IDF`: sets the weight.
    Presence,
    /// `TFIDF`: adds the weight.
    Product,
}

struct NGramVectorizer {
    mode: NGramMode,
    shortest: usize,
    longest: usize,
    /// The maximum number of items between two of a sequence.
    most_skips: usize,
    words: FxHashMap<String, usize>,
    numbers: FxHashMap<i64, usize>,
    /// The trie of known sequences: a node and an item lead to a node. Nodes for a first item are in `first_nodes`.
    tree: FxHashMap<(usize, usize), usize>,
    /// For each item the node of the sequences that start with it.
    first_nodes: Vec<Option<usize>>,
    /// For each node the column and the weight of the sequence that ends there.
    found: Vec<Option<(usize, f32)>>,
    /// The number of columns.
    width: usize,
}

impl NGramVectorizer {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let mode = match call.string_attribute("mode")?.unwrap_or("TF") {
            "TF" => NGramMode::Count,
            "IDF" => NGramMode::Presence,
            "TFIDF" => NGramMode::Product,
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `mode` to be `TF`, `IDF` or `TFIDF`, found `{other}`"
                )));
            }
        };
        let length = |name: &str, least: i64| match call.int_attribute(name)? {
            Some(found) if found >= least => Ok(usize::try_from(found).unwrap_or(usize::MAX)),
            Some(found) => Err(PluginError::invalid_argument(format!(
                "expected `{name}` of at least {least}, found {found}"
            ))),
            None => {
                Err(PluginError::invalid_argument(format!("expected the attribute `{name}`, found none")))
            }
        };
        let indexes = call.ints_attribute("ngram_indexes")?.unwrap_or_default();
        let width = indexes.iter().max().map_or(0, |last| last.saturating_add(1));
        ensure!(
            width > 0 && indexes.iter().all(|index| *index >= 0),
            invalid_argument,
            "expected `ngram_indexes` of at least 0, found {indexes:?}"
        );
        let weights: Vec<f32> = call
            .floats_attribute("weights")?
            .unwrap_or_default()
            .iter()
            .map(|weight| *weight as f32)
            .collect();
        ensure!(
            weights.is_empty() || weights.len() == indexes.len(),
            invalid_argument,
            "expected a weight for each of the {} sequences in `ngram_indexes`, found {}",
            indexes.len(),
            weights.len()
        );
        let mut this = Self {
            mode,
            shortest: length("min_gram_length", 1)?,
            longest: length("max_gram_length", 1)?,
            most_skips: length("max_skip_count", 0)?,
            words: FxHashMap::default(),
            numbers: FxHashMap::default(),
            tree: FxHashMap::default(),
            first_nodes: Vec::new(),
            found: Vec::new(),
            width: width as usize,
        };
        ensure!(
            this.shortest <= this.longest,
            invalid_argument,
            "expected `min_gram_length` of at most `max_gram_length` {}, found {}",
            this.longest,
            this.shortest
        );
        let pool = this.read_pool(call)?;
        this.first_nodes = vec![None; pool.iter().max().map_or(0, |last| last + 1)];
        let weights = weights.into_iter().chain(std::iter::repeat(1.0));
        let columns: Vec<_> = indexes.iter().map(|index| *index as usize).zip(weights).collect();
        this.build_tree(&pool, call.ints_attribute("ngram_counts")?.unwrap_or_default(), &columns)?;
        Ok(this)
    }

    /// The items of all known sequences, as ids.
    fn read_pool(&mut self, call: &KernelCall<'_>) -> Result<Vec<usize>> {
        let pool_words = attributes::string_list(call, "pool_strings")?.unwrap_or_default();
        if let Some(numbers) = call.ints_attribute("pool_int64s")?.filter(|numbers| !numbers.is_empty()) {
            ensure!(
                pool_words.is_empty(),
                invalid_argument,
                "expected `pool_strings` or `pool_int64s`, found both"
            );
            let known = &mut self.numbers;
            let mut number_of = |number: &i64| {
                let next = known.len();
                *known.entry(*number).or_insert(next)
            };
            return Ok(numbers.iter().map(&mut number_of).collect());
        }
        // Words become ids as numbers do, so that one trie serves both.
        let known = &mut self.words;
        let mut number_of = |word: &&str| {
            let next = known.len();
            *known.entry((*word).to_owned()).or_insert(next)
        };
        Ok(pool_words.iter().map(&mut number_of).collect())
    }

    /// Builds the trie of the known sequences: `starts` says for each length where in the pool its sequences start.
    fn build_tree(&mut self, pool: &[usize], starts: &[i64], columns: &[(usize, f32)]) -> Result<()> {
        let column_count = columns.len();
        let mut columns = columns.iter().copied();
        for (length, start) in starts.iter().enumerate() {
            let end = starts.get(length + 1).copied().unwrap_or(pool.len() as i64);
            let place = |at: i64| usize::try_from(at).ok();
            let part = place(*start).zip(place(end)).and_then(|(start, end)| pool.get(start..end));
            let part = part.ok_or_else(|| {
                PluginError::invalid_argument(format!(
                    "expected `ngram_counts` that rise up to {}, found {starts:?}",
                    pool.len()
                ))
            })?;
            ensure!(
                part.len().is_multiple_of(length + 1),
                invalid_argument,
                "expected whole sequences of {} items in the pool, found {} items",
                length + 1,
                part.len()
            );
            for sequence in part.chunks_exact(length + 1) {
                let column = columns.next().ok_or_else(|| {
                    PluginError::invalid_argument(format!(
                        "expected an item of `ngram_indexes` for each sequence of the pool, found {column_count}"
                    ))
                })?;
                // Sequences of other lengths are not counted, but each has taken its column.
                if !(self.shortest..=self.longest).contains(&(length + 1)) {
                    continue;
                }
                let mut last = None;
                for item in sequence {
                    let next = self.found.len();
                    let node = match last {
                        None => *self.first_nodes[*item].get_or_insert(next),
                        Some(node) => *self.tree.entry((node, *item)).or_insert(next),
                    };
                    // A new entry has the next number, and needs a node of it.
                    if node == next {
                        self.found.push(None);
                    }
                    last = Some(node);
                }
                if let Some(node) = last {
                    self.found[node] = Some(column);
                }
            }
        }
        Ok(())
    }

    fn run(&self, cpu: &Cpu, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let call = operands.call();
        let (input, output) = (call.input(0)?, call.output(0)?);
        let items: Vec<Option<usize>> = match input.dtype() {
            Dtype::STRING => {
                read_texts(&input)?.into_iter().map(|word| self.words.get(word).copied()).collect()
            }
            Dtype::I32 => {
                let number = |number: &i32| self.numbers.get(&i64::from(*number)).copied();
                operands.read_input::<i32>(0)?.iter().map(number).collect()
            }
            _ => operands
                .read_input::<i64>(0)?
                .iter()
                .map(|number| self.numbers.get(number).copied())
                .collect(),
        };
        let (rows, length) = match *input.dims() {
            [length] => (1, length as usize),
            [rows, length] => (rows as usize, length as usize),
            _ => {
                return Err(PluginError::invalid_argument(format!(
                    "expected one or two dimensions, found {:?}",
                    input.dims()
                )));
            }
        };
        let mut dims = input.dims().to_vec();
        if let Some(last) = dims.last_mut() {
            *last = self.width as i64;
        }
        operands.expect_dims(&output, "Y", &dims)?;
        let out = operands.write_output::<f32>(0)?;
        if out.is_empty() {
            return Ok(());
        }
        let out = OutputRows::new(out, self.width);
        let work = length.saturating_add(self.width);
        parallel_for_parts(cpu, rows, grain_for(work), out, |first, out| {
            out.fill(0.0);
            for (row, out) in out.chunks_mut(self.width).enumerate() {
                self.find_sequences(&items[(first + row) * length..][..length], out);
            }
        });
        Ok(())
    }

    /// Finds the known sequences of a row.
    fn find_sequences(&self, items: &[Option<usize>], out: &mut [f32]) {
        let mut shortest = self.shortest;
        // Longer steps than the row reach no second item, however many skips are allowed.
        for step in 1..=self.most_skips.saturating_add(1).min(items.len().max(1)) {
            for (start, first) in items.iter().enumerate() {
                let Some(mut node) = first.and_then(|item| self.first_nodes[item]) else { continue };
                let mut length = 1;
                let mut others = items[start..].iter().step_by(step).skip(1);
                loop {
                    if let Some((column, weight)) = self.found[node].filter(|_| length >= shortest) {
                        match self.mode {
                            NGramMode::Count => out[column] += 1.0,
                            NGramMode::Presence => out[column] = weight,
                            NGramMode::Product => out[column] += weight,
                        }
                    }
                    if length == self.longest {
                        break;
                    }
                    let next = others.next().copied().flatten().and_then(|item| self.tree.get(&(node, item)));
                    let Some(next) = next else { break };
                    node = *next;
                    length += 1;
                }
            }
            // Single items have no gaps, so they are counted once.
            if shortest == 1 {
                shortest = 2;
                if shortest > self.longest {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
    use oarlock_sdk::Dtype;

    /// The numbers 1 and 2 alone, and one after the other.
    fn vectorizer_attributes<'a>(
        mode: &'a str,
        more: &[(&'a str, TestAttribute<'a>)],
    ) -> Vec<(&'a str, TestAttribute<'a>)> {
        let mut all = vec![
            ("mode", TestAttribute::Text(mode)),
            ("min_gram_length", TestAttribute::Int(1)),
            ("max_gram_length", TestAttribute::Int(2)),
            ("max_skip_count", TestAttribute::Int(1)),
            ("ngram_counts", TestAttribute::Ints(&[0, 2])),
            ("ngram_indexes", TestAttribute::Ints(&[2, 0, 1])),
            ("pool_int64s", TestAttribute::Ints(&[1, 2, 1, 2])),
        ];
        for (name, value) in more {
            all.retain(|(other, _)| other != name);
            all.push((name, *value));
        }
        all
    }

    #[test]
    fn sequences_are_counted_with_and_without_gaps() {
        let rows = TestArray::from_values(&[2, 3], &[1i64, 2, 2, 7, 1, 7]);
        // One pair side by side, and one with a number between.
        let counts = TestArray::from_values(&[2, 3], &[2f32, 2., 1., 0., 0., 1.]);
        KERNELS.check_kernel(
            "TfIdfVectorizer",
            9,
            &vectorizer_attributes("TF", &[]),
            &[Some(&rows)],
            &[counts],
        );
        let weighed = [("weights", TestAttribute::Floats(&[0.5, 1.0, 3.0]))];
        // Weights are those of the sequences, whatever their columns.
        let present = TestArray::from_values(&[2, 3], &[1f32, 3., 0.5, 0., 0., 0.5]);
        KERNELS.check_kernel(
            "TfIdfVectorizer",
            9,
            &vectorizer_attributes("IDF", &weighed),
            &[Some(&rows)],
            &[present],
        );
    }

    #[test]
    fn sequences_of_one_column_add_up() {
        let row = TestArray::from_values(&[4], &[1i64, 2, 2, 1]);
        let shared = [
            ("ngram_indexes", TestAttribute::Ints(&[0, 0, 2])),
            ("weights", TestAttribute::Floats(&[1.0, 2.0, 4.0])),
            ("max_skip_count", TestAttribute::Int(0)),
        ];
        for (mode, expected) in [("TF", [4f32, 0., 1.]), ("IDF", [1., 0., 4.]), ("TFIDF", [6., 0., 4.])] {
            let expected = TestArray::from_values(&[3], &expected);
            KERNELS.check_kernel(
                "TfIdfVectorizer",
                9,
                &vectorizer_attributes(mode, &shared),
                &[Some(&row)],
                &[expected],
            );
        }
    }

    #[test]
    fn hostile_attributes_are_refused() {
        let row = TestArray::from_values(&[1], &[1i64]);
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[3]))];
        for (name, value) in [
            ("ngram_counts", TestAttribute::Ints(&[0, 9])),
            ("ngram_counts", TestAttribute::Ints(&[2, 0])),
            ("ngram_counts", TestAttribute::Ints(&[-1])),
            ("ngram_indexes", TestAttribute::Ints(&[-1, 0, 1])),
            ("ngram_indexes", TestAttribute::Ints(&[0])),
            ("max_gram_length", TestAttribute::Int(0)),
            ("min_gram_length", TestAttribute::Int(3)),
            ("pool_int64s", TestAttribute::Ints(&[1, 2, 1, 2, 1])),
            ("max_skip_count", TestAttribute::Int(-1)),
            ("mode", TestAttribute::Text("COUNT")),
            ("pool_strings", TestAttribute::Texts(&["a"])),
            ("weights", TestAttribute::Floats(&[1.0])),
        ] {
            let message = KERNELS.refusal_message(
                "TfIdfVectorizer",
                9,
                &vectorizer_attributes("TF", &[(name, value)]),
                &[Some(&row)],
                &outputs,
            );
            assert!(message.contains("expected"), "{message}");
        }
        let endless = vectorizer_attributes("TF", &[("max_skip_count", TestAttribute::Int(i64::MAX))]);
        KERNELS.check_kernel(
            "TfIdfVectorizer",
            9,
            &endless,
            &[Some(&row)],
            &[TestArray::from_values(&[3], &[0f32, 0., 1.])],
        );
    }
}
