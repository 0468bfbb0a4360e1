//! Modules of a crate that use each other in a cycle: `cargo xtask cycles`.
//!
//! Dependencies inside crates go one way too, so that a reader can start at the bottom without knowing the rest. Modules are compared
//! with their siblings, each together with its child modules, without tests. A module and its own children may use each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use syn::visit::{self, Visit};

use crate::workspace::CargoWorkspace;
use crate::{cargo, root};

#[derive(Args)]
pub(crate) struct CyclesArguments {
    /// Name every use that is part of a cycle
    #[arg(long)]
    uses: bool,
}

/// The path of a module from the crate root, whose own path is empty.
type ModulePath = Vec<String>;

/// Floors inside crates, the lowest first: a module uses none of those after it. Modules that are not named may use any of them.
#[cfg(test)]
const MODULE_FLOORS: &[(&str, &[&str])] = &[
    ("runtime/engine", &["host_ops", "passes", "plan", "run", "session"]),
    ("runtime/core", &["schema", "infer", "memory", "registry", "runtime", "dispatch"]),
    ("runtime/model", &["graph", "import"]),
    ("runtime/host", &["services", "load", "startup"]),
];

/// The uses between modules of one crate.
#[derive(Default)]
struct ModuleUses {
    modules: BTreeSet<ModulePath>,
    /// The absolute paths that each module uses.
    paths: Vec<(ModulePath, ModulePath)>,
    /// The re-exports of each module, by name.
    exports: BTreeMap<(ModulePath, String), ModulePath>,
}

/// Modules that use each other, and the uses among them as `plan/build -> run::RunContext`.
struct ModuleCycle {
    modules: Vec<String>,
    uses: Vec<String>,
}

pub(crate) fn run(arguments: &CyclesArguments) -> Result<()> {
    for (home, cycles) in find_cycles(&root())? {
        for cycle in cycles {
            println!("{}: {}", home.display(), cycle.modules.join(", "));
            if arguments.uses {
                cycle.uses.iter().for_each(|line| println!("    {line}"));
            }
        }
    }
    Ok(())
}

/// The cycles of each crate that has any.
fn find_cycles(root: &Path) -> Result<BTreeMap<PathBuf, Vec<ModuleCycle>>> {
    let workspace = CargoWorkspace::of_cargo(&cargo(), root)?;
    let mut found = BTreeMap::new();
    for member in workspace.members.values() {
        let mut uses = ModuleUses::default();
        uses.read_directory(&root.join(&member.directory).join("src"), &[])?;
        let cycles = uses.cycles();
        if !cycles.is_empty() {
            found.insert(member.directory.clone(), cycles);
        }
    }
    Ok(found)
}

impl ModuleUses {
    fn read_directory(&mut self, directory: &Path, module: &[String]) -> Result<()> {
        let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
        for entry in entries {
            let path = entry?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if stem == "tests" || stem == "bin" {
                continue;
            }
            let is_root = ["lib", "main", "mod"].contains(&stem.as_str());
            let inner: ModulePath =
                if is_root { module.to_vec() } else { module.iter().cloned().chain([stem]).collect() };
            if path.is_dir() {
                self.read_directory(&path, &inner)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                self.read_source(&inner, &text).with_context(|| path.display().to_string())?;
            }
        }
        Ok(())
    }

    fn read_source(&mut self, module: &[String], text: &str) -> Result<()> {
        self.modules.insert(module.to_vec());
        let file = syn::parse_file(text)?;
        UseReader { uses: self, module: module.to_vec() }.visit_file(&file);
        Ok(())
    }

    /// The uses of a higher floor by a lower one.
    #[cfg(test)]
    fn floor_breaches(&self, floors: &[&str]) -> Vec<String> {
        let floor =
            |module: &[String]| floors.iter().position(|floor| module.first().is_some_and(|it| it == floor));
        let is_upward = |(from, path): &&(ModulePath, ModulePath)| {
            floor(from).zip(floor(&self.resolve(path))).is_some_and(|(user, used)| user < used)
        };
        let breaches = self.paths.iter().filter(is_upward);
        breaches.map(|(from, path)| format!("{} -> {}", from.join("/"), path.join("::"))).collect()
    }

    /// The module that a path refers to, following re-exports.
    fn resolve(&self, path: &[String]) -> ModulePath {
        let mut path = path.to_vec();
        // A path passes through each re-export once at most, unless they form a cycle.
        for _ in 0..=self.exports.len() {
            let length = (0..=path.len()).rev().find(|&length| self.modules.contains(&path[..length]));
            let module = path[..length.unwrap_or(0)].to_vec();
            let Some(name) = path.get(module.len()) else { return module };
            let Some(target) = self.exports.get(&(module.clone(), name.clone())) else { return module };
            path = target.iter().chain(&path[module.len() + 1..]).cloned().collect();
        }
        path
    }

    fn cycles(&self) -> Vec<ModuleCycle> {
        // Edges join siblings: the two modules at which the paths of user and used part.
        let mut edges = SiblingEdges::new();
        for (from, path) in &self.paths {
            let used = self.resolve(path);
            let parent = from.iter().zip(&used).take_while(|(one, other)| one == other).count();
            if parent < from.len() && parent < used.len() {
                let line = format!("{} -> {}", from.join("/"), path.join("::"));
                let targets = edges.entry(&from[..=parent]).or_default();
                targets.entry(used[..=parent].to_vec()).or_default().insert(line);
            }
        }
        let reached: BTreeMap<&[String], BTreeSet<&[String]>> =
            edges.keys().map(|module| (*module, reachable(&edges, module))).collect();
        let is_mutual =
            |one: &[String], other: &[String]| reached[one].contains(other) && reached[other].contains(one);
        let mut cycles: Vec<ModuleCycle> = Vec::new();
        for module in edges.keys().filter(|module| is_mutual(module, module)) {
            if cycles.iter().any(|cycle| cycle.modules.contains(&module.join("/"))) {
                continue;
            }
            let members: Vec<&[String]> =
                edges.keys().copied().filter(|other| is_mutual(module, other)).collect();
            let uses = members.iter().flat_map(|user| &edges[user]);
            let uses = uses.filter(|(used, _)| members.contains(&&used[..])).flat_map(|(_, lines)| lines);
            cycles.push(ModuleCycle {
                uses: uses.cloned().collect(),
                modules: members.iter().map(|member| member.join("/")).collect(),
            });
        }
        cycles
    }
}

/// For each module, the siblings that it uses, and the uses as text.
type SiblingEdges<'e> = BTreeMap<&'e [String], BTreeMap<ModulePath, BTreeSet<String>>>;

/// The modules that one depends on, directly or indirectly; includes itself only if it is on a cycle.
fn reachable<'e>(edges: &'e SiblingEdges, module: &[String]) -> BTreeSet<&'e [String]> {
    let mut reached = BTreeSet::new();
    let mut next = vec![module];
    while let Some(module) = next.pop() {
        for used in edges.get(module).into_iter().flat_map(|used| used.keys()) {
            if reached.insert(&used[..]) {
                next.push(used);
            }
        }
    }
    reached
}

/// Collects the paths that begin with `crate`, `self` or `super`.
struct UseReader<'u> {
    uses: &'u mut ModuleUses,
    module: ModulePath,
}

impl UseReader<'_> {
    /// Converts a path relative to this module, or to the crate root, to an absolute path.
    fn absolute(&self, names: &[String]) -> Option<ModulePath> {
        let ups = names.iter().take_while(|name| *name == "super").count();
        let base = match names.first()?.as_str() {
            "crate" => return Some(names[1..].to_vec()),
            "self" => return Some(self.module.iter().chain(&names[1..]).cloned().collect()),
            "super" => self.module.get(..self.module.len().checked_sub(ups)?)?,
            _ => return None,
        };
        Some(base.iter().chain(&names[ups..]).cloned().collect())
    }

    fn read_use(&mut self, tree: &syn::UseTree, before: &[String], is_export: bool) {
        let with =
            |name: &syn::Ident| before.iter().cloned().chain([name.to_string()]).collect::<ModulePath>();
        let (path, name) = match tree {
            syn::UseTree::Path(path) => return self.read_use(&path.tree, &with(&path.ident), is_export),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.read_use(tree, before, is_export));
                return;
            }
            syn::UseTree::Name(name) if name.ident == "self" => (before.to_vec(), before.last().cloned()),
            syn::UseTree::Name(name) => (with(&name.ident), Some(name.ident.to_string())),
            syn::UseTree::Rename(rename) => (with(&rename.ident), Some(rename.rename.to_string())),
            syn::UseTree::Glob(_) => (before.to_vec(), None),
        };
        let child = || self.module.iter().chain(&path).cloned().collect::<ModulePath>();
        let absolute = self.absolute(&path);
        match (is_export, absolute, name) {
            // A path without `crate`, `self` or `super` refers to a child, or to another crate, which resolves to no module.
            (true, absolute, Some(name)) => {
                let target = absolute.unwrap_or_else(child);
                if target != self.module {
                    self.uses.exports.insert((self.module.clone(), name), target);
                }
            }
            (_, Some(absolute), _) => self.uses.paths.push((self.module.clone(), absolute)),
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for UseReader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident == "tests" {
            return;
        }
        self.module.push(item.ident.to_string());
        if item.content.is_some() {
            self.uses.modules.insert(self.module.clone());
        }
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.read_use(&item.tree, &[], !matches!(item.vis, syn::Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: ModulePath = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some(absolute) = self.absolute(&names).filter(|_| names.len() > 1) {
            self.uses.paths.push((self.module.clone(), absolute));
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles_of(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut uses = ModuleUses::default();
        for (module, text) in sources {
            let module: ModulePath =
                module.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            uses.read_source(&module, text).unwrap();
        }
        uses.cycles().into_iter().map(|cycle| cycle.modules).collect()
    }

    #[test]
    fn no_modules_use_each_other_in_a_cycle() {
        let found = find_cycles(&root()).expect("the tree");
        let cycles: Vec<(&Path, &[String])> = found
            .iter()
            .flat_map(|(home, cycles)| cycles.iter().map(|it| (home.as_path(), &it.modules[..])))
            .collect();
        assert!(
            cycles.is_empty(),
            "expected modules of a crate to use each other in one direction, found {cycles:?}; \
             `cargo xtask cycles --uses` names the uses"
        );
    }

    #[test]
    fn modules_use_no_floor_above_their_own() {
        for (home, floors) in MODULE_FLOORS {
            let mut uses = ModuleUses::default();
            uses.read_directory(&root().join(home).join("src"), &[]).expect("the sources");
            for floor in *floors {
                assert!(uses.modules.contains(&[(*floor).to_owned()][..]), "expected `{floor}` in {home}");
            }
            assert_eq!(uses.floor_breaches(floors), Vec::<String>::new(), "{home}");
        }
    }

    #[test]
    fn a_use_of_a_higher_floor_is_found() {
        let mut uses = ModuleUses::default();
        for (module, text) in [("plan", "use crate::run::Context;"), ("run", "use crate::plan::Plan;")] {
            uses.read_source(&[module.to_owned()], text).expect("a source");
        }
        assert_eq!(uses.floor_breaches(&["plan", "run"]), ["plan -> run::Context"]);
    }

    #[test]
    fn a_cycle_is_found_through_children_and_re_exports() {
        let root = ("", "mod plan; mod run; mod text; pub use run::Context;");
        let plan = ("plan/build", "use crate::{Context, text::trim}; fn build() {}");
        let run = ("run", "fn run() { super::plan::build::start(); } pub struct Context;");
        let text = ("text", "pub fn trim() {} mod tests { use crate::run::Context; }");
        assert_eq!(cycles_of(&[root, ("plan", "mod build;"), plan, run, text]), [["plan", "run"]]);
        let straight = ("run", "use crate::text::trim; pub struct Context;");
        assert!(cycles_of(&[root, ("plan", "mod build;"), plan, straight, text]).is_empty());
    }

    #[test]
    fn a_cycle_is_found_in_a_folder() {
        let parent = ("plan", "mod build; mod draft;");
        let build = ("plan/build", "use super::draft::Draft; pub struct Build;");
        let draft = ("plan/draft", "use crate::plan::build::Build; pub struct Draft;");
        assert_eq!(cycles_of(&[("", "mod plan;"), parent, build, draft]), [["plan/build", "plan/draft"]]);
    }

    #[test]
    fn a_module_and_its_child_may_use_each_other() {
        let parent = ("plan", "mod build; use build::Draft; pub struct Plan;");
        let child = ("plan/build", "use super::Plan; pub struct Draft;");
        assert!(cycles_of(&[("", "mod plan;"), parent, child]).is_empty());
    }
}
