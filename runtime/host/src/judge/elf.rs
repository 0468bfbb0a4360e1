//! Reads an ELF file before the dynamic linker does, and reads the same parts of it.
//!
//! All information comes from the program headers and the dynamic table, because the linker relies on those. Section headers can
//! be missing or wrong without any effect on loading, so they are only checked for truncation. Every offset comes from an untrusted
//! file: it is checked before it is followed.

use std::fs::File;
use std::path::Path;

use object::elf::{self, Dyn64, FileHeader64, ProgramHeader64, Sym64};
use object::read::elf::{
    Dyn as _, FileHeader as _, GnuHashTable, HashTable, ProgramHeader as _, SectionHeader as _, Sym as _,
};
use object::{NativeEndian, ReadRef};

use crate::files::regular_file::open_regular;
use crate::{Refusal, RefusalReason};

const ENDIAN: NativeEndian = NativeEndian;

/// A defect of the file: the reason, what was expected, and what was found.
type ElfFlaw = (RefusalReason, &'static str, String);

/// The symbols and libraries that a shared object provides to its process and needs from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedObject {
    /// The symbols that other objects can bind to.
    pub exports: Vec<ExportedSymbol>,
    /// The symbols that another object must provide, without weak ones, which may stay unresolved.
    pub imports: Vec<String>,
    /// The libraries that it is linked to, and its own search path for them.
    pub links: LinkedLibraries,
    /// What it does to the memory protection of its process.
    pub memory: MemoryDemands,
}

/// What an object does to the memory protection of its process when it is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryDemands {
    /// The linker makes the stacks of the process executable for it.
    pub executable_stack: bool,
    /// The linker makes its code writable while it relocates it.
    pub text_relocations: bool,
}

/// A library that was opened: what it needs, and the file itself, so that what is judged is what was read.
#[derive(Debug)]
pub(crate) struct OpenLibrary {
    pub(crate) links: LinkedLibraries,
    pub(crate) memory: MemoryDemands,
    pub(crate) file: File,
}

/// A symbol that other objects can bind to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedSymbol {
    /// The mangled name, as in the file.
    pub name: String,
    /// How the dynamic linker treats a second definition of the name.
    pub binding: SymbolBinding,
}

/// The treatment of a second definition of a symbol by the dynamic linker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolBinding {
    /// The first definition wins.
    Strong,
    /// A weak definition, such as a C++ inline function.
    Weak,
    /// One definition for the whole process, regardless of scope; the object that contains it is never unloaded.
    Unique,
}

/// The libraries that an object is linked to, and its own search path for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkedLibraries {
    /// The name by which other objects refer to it.
    pub soname: Option<String>,
    /// The names of the libraries that it needs.
    pub needed: Vec<String>,
    /// Directories to search before those of the user, separated by colons.
    pub rpath: Option<String>,
    /// Directories to search after those of the user, separated by colons. If present, `rpath` is ignored.
    pub runpath: Option<String>,
}

impl SharedObject {
    /// Judges the bytes of the file at `path` and lists its symbols.
    pub fn parse_bytes(path: &Path, bytes: &[u8]) -> Result<Self, Refusal> {
        parse_object(bytes).map_err(|flaw| flaw_refusal(path, flaw))
    }

    /// Judges an open file and reads only the parts that matter; `path` only appears in the refusal.
    pub(crate) fn read_file(path: &Path, file: &File) -> Result<Self, Refusal> {
        let cache = object::ReadCache::new(file);
        parse_object(&cache).map_err(|flaw| flaw_refusal(path, flaw))
    }

    /// True if the object exports `name`.
    pub fn exports_symbol(&self, name: &str) -> bool {
        self.exports.iter().any(|export| export.name == name)
    }
}

impl OpenLibrary {
    /// Reads only the links and demands: the library at `path` may have hundreds of megabytes.
    pub(crate) fn open_file(path: &Path) -> Result<Self, Refusal> {
        let unreadable = |error: std::io::Error| {
            let remedy = "make it readable or reinstall the package it came with";
            Refusal::new(RefusalReason::Unreadable, path, "a readable library", error.to_string(), remedy)
        };
        let (file, _) = open_regular(path).map_err(unreadable)?;
        let cache = object::ReadCache::new(&file);
        let read = ElfImage::parse_headers(&cache)
            .and_then(|image| Ok((image.linked_libraries()?, image.memory_demands())));
        let (links, memory) = read.map_err(|flaw| flaw_refusal(path, flaw))?;
        Ok(Self { links, memory, file })
    }
}

fn flaw_refusal(path: &Path, (reason, expected, found): ElfFlaw) -> Refusal {
    let remedy = match reason {
        RefusalReason::WrongArchitecture => architecture_remedy(None),
        RefusalReason::NotASharedObject => {
            "link it with `-shared`, or remove it from the plugin directory".to_owned()
        }
        _ => "copy or install the file again".to_owned(),
    };
    Refusal::new(reason, path, expected, found, remedy)
}

/// How to replace a plugin for another architecture; `package` is the one that it came with, if known.
pub(crate) fn architecture_remedy(package: Option<&str>) -> String {
    let what =
        package.map_or_else(|| "the build of this plugin".to_owned(), |package| format!("`{package}`"));
    format!("install {what} for {}", std::env::consts::ARCH)
}

fn parse_object<'data, R: ReadRef<'data>>(data: R) -> Result<SharedObject, ElfFlaw> {
    let image = ElfImage::parse_headers(data)?;
    let (exports, imports) = image.exported_and_imported()?;
    Ok(SharedObject { exports, imports, links: image.linked_libraries()?, memory: image.memory_demands() })
}

fn truncated_flaw(found: impl Into<String>) -> ElfFlaw {
    (RefusalReason::Truncated, "a complete file", found.into())
}

/// A file with headers that were checked against its length.
struct ElfImage<'data, R> {
    data: R,
    segments: &'data [ProgramHeader64<NativeEndian>],
    dynamic: &'data [Dyn64<NativeEndian>],
}

impl<'data, R: ReadRef<'data>> ElfImage<'data, R> {
    fn parse_headers(data: R) -> Result<Self, ElfFlaw> {
        let length = data.len().map_err(|()| truncated_flaw("a file whose length is unknown"))?;
        check_identification(data, length)?;
        let header: &FileHeader64<NativeEndian> = data
            .read_at(0)
            .map_err(|()| truncated_flaw(format!("{length} bytes, fewer than an ELF header has")))?;
        if header.e_type(ENDIAN) != elf::ET_DYN {
            let found = match header.e_type(ENDIAN) {
                elf::ET_REL => "an object file that has not been linked",
                elf::ET_EXEC => "a program",
                elf::ET_CORE => "a core dump",
                _ => "an ELF file of an unknown type",
            };
            return Err((RefusalReason::NotASharedObject, "a shared object", found.to_owned()));
        }
        let cut = |what| truncated_flaw(format!("{what} that lie past its end at byte {length}"));
        let segments = header.program_headers(ENDIAN, data).map_err(|_| cut("program headers"))?;
        for segment in segments {
            let (offset, size) = segment.file_range(ENDIAN);
            if offset.checked_add(size).is_none_or(|end| end > length) {
                return Err(cut("segments"));
            }
        }
        let sections = header.section_headers(ENDIAN, data).map_err(|_| cut("section headers"))?;
        for (offset, size) in sections.iter().filter_map(|section| section.file_range(ENDIAN)) {
            if offset.checked_add(size).is_none_or(|end| end > length) {
                return Err(cut("sections"));
            }
        }
        let dynamic = segments
            .iter()
            .find_map(|segment| segment.dynamic(ENDIAN, data).transpose())
            .ok_or((RefusalReason::NotASharedObject, "a shared object", "no dynamic table".to_owned()))?
            .map_err(|_| truncated_flaw("a dynamic table that is cut off"))?;
        let image = Self { data, segments, dynamic };
        if image.dynamic_value(elf::DT_FLAGS_1).is_some_and(|flags| flags & elf::DF_1_PIE.0 != 0) {
            return Err((RefusalReason::NotASharedObject, "a shared object", "a program".to_owned()));
        }
        Ok(image)
    }

    fn dynamic_entries(&self) -> impl Iterator<Item = (elf::DynamicTag, u64)> {
        let entries = self.dynamic.iter().map(|entry| (entry.d_tag(ENDIAN), entry.d_val(ENDIAN)));
        entries.take_while(|(tag, _)| *tag != elf::DT_NULL)
    }

    fn dynamic_value(&self, wanted: elf::DynamicTag) -> Option<u64> {
        // Where a tag is repeated, the linker uses the last.
        self.dynamic_entries().filter_map(|(tag, value)| (tag == wanted).then_some(value)).last()
    }

    /// The bytes of the file that are loaded at `address`: `size` of them, or all up to the end of the segment.
    fn bytes_at_address(&self, address: u64, size: Option<u64>) -> Option<&'data [u8]> {
        self.segments.iter().filter(|segment| segment.p_type(ENDIAN) == elf::PT_LOAD).find_map(|segment| {
            let (offset, length) = segment.file_range(ENDIAN);
            let into = address.checked_sub(segment.p_vaddr(ENDIAN)).filter(|into| *into < length)?;
            let size = size.unwrap_or(length - into);
            self.data.read_bytes_at(offset.checked_add(into)?, size).ok()
        })
    }

    fn string_table(&self) -> Result<StringTable<'data>, ElfFlaw> {
        let Some(address) = self.dynamic_value(elf::DT_STRTAB) else { return Ok(StringTable::new(&[])) };
        let bytes = self.bytes_at_address(address, self.dynamic_value(elf::DT_STRSZ));
        bytes.map(StringTable::new).ok_or_else(|| truncated_flaw("a string table that is cut off"))
    }

    fn linked_libraries(&self) -> Result<LinkedLibraries, ElfFlaw> {
        let mut strings = self.string_table()?;
        let mut links = LinkedLibraries::default();
        for (tag, value) in self.dynamic_entries() {
            match tag {
                // The linker loads what an object filters as if the object needed it.
                elf::DT_NEEDED | elf::DT_FILTER | elf::DT_AUXILIARY => {
                    links.needed.push(strings.string_at(value)?);
                }
                elf::DT_SONAME => links.soname = Some(strings.string_at(value)?),
                elf::DT_RPATH => links.rpath = Some(strings.string_at(value)?),
                elf::DT_RUNPATH => links.runpath = Some(strings.string_at(value)?),
                _ => {}
            }
        }
        Ok(links)
    }

    fn memory_demands(&self) -> MemoryDemands {
        let stacks = self.segments.iter().filter(|segment| segment.p_type(ENDIAN) == elf::PT_GNU_STACK);
        let executable: Vec<bool> =
            stacks.map(|segment| segment.p_flags(ENDIAN).contains(elf::PF_X)).collect();
        let has_flag = |(tag, value): (elf::DynamicTag, u64)| {
            tag == elf::DT_TEXTREL || tag == elf::DT_FLAGS && value & elf::DF_TEXTREL.0 != 0
        };
        MemoryDemands {
            // An object that says nothing is taken for one from before there was anything to say.
            executable_stack: executable.is_empty() || executable.contains(&true),
            text_relocations: self.dynamic_entries().any(has_flag),
        }
    }

    fn exported_and_imported(&self) -> Result<(Vec<ExportedSymbol>, Vec<String>), ElfFlaw> {
        let (mut exports, mut imports) = (Vec::new(), Vec::new());
        let mut strings = self.string_table()?;
        for symbol in self.symbol_table()? {
            let name = strings.string_at(symbol.st_name(ENDIAN).into())?;
            let binding = match symbol.st_bind() {
                elf::STB_GLOBAL => SymbolBinding::Strong,
                elf::STB_WEAK => SymbolBinding::Weak,
                elf::STB_GNU_UNIQUE => SymbolBinding::Unique,
                _ => continue,
            };
            let visible = matches!(symbol.st_visibility(), elf::STV_DEFAULT | elf::STV_PROTECTED);
            match symbol.st_shndx(ENDIAN) {
                elf::SHN_UNDEF if binding == SymbolBinding::Strong => imports.push(name),
                // The absolute symbols of a shared object are the names of its version nodes, not definitions.
                elf::SHN_UNDEF | elf::SHN_ABS => {}
                _ if visible => exports.push(ExportedSymbol { name, binding }),
                _ => {}
            }
        }
        Ok((exports, imports))
    }

    fn symbol_table(&self) -> Result<&'data [Sym64<NativeEndian>], ElfFlaw> {
        let cut = |what| truncated_flaw(format!("a {what} that is cut off"));
        let Some(address) = self.dynamic_value(elf::DT_SYMTAB) else { return Ok(&[]) };
        let table = self.bytes_at_address(address, None).ok_or_else(|| cut("symbol table"))?;
        // The symbol table has no length; the hash table, through which the linker finds symbols, implies it.
        let count = if let Some(address) = self.dynamic_value(elf::DT_GNU_HASH) {
            let bytes = self.bytes_at_address(address, None).ok_or_else(|| cut("hash table"))?;
            let hash = GnuHashTable::<FileHeader64<NativeEndian>>::parse(ENDIAN, bytes);
            let hash = hash.map_err(|_| cut("hash table"))?;
            hash.symbol_table_length(ENDIAN).unwrap_or_else(|| hash.symbol_base())
        } else if let Some(address) = self.dynamic_value(elf::DT_HASH) {
            let bytes = self.bytes_at_address(address, None).ok_or_else(|| cut("hash table"))?;
            let hash = HashTable::<FileHeader64<NativeEndian>>::parse(ENDIAN, bytes);
            hash.map_err(|_| cut("hash table"))?.symbol_table_length()
        } else {
            0
        };
        let symbols = object::pod::slice_from_bytes(table, count as usize);
        let (symbols, _) = symbols.map_err(|()| cut("symbol table"))?;
        Ok(symbols.get(1..).unwrap_or(&[]))
    }
}

/// A string table with a limit on the bytes that may still be copied out of it.
///
/// Names may share bytes, so without the limit a small hostile file could ask for terabytes of them.
struct StringTable<'data> {
    bytes: &'data [u8],
    budget: usize,
}

impl<'data> StringTable<'data> {
    fn new(bytes: &'data [u8]) -> Self {
        Self { bytes, budget: bytes.len().saturating_mul(16) }
    }

    fn string_at(&mut self, offset: u64) -> Result<String, ElfFlaw> {
        let tail = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..));
        let tail = tail.ok_or_else(|| truncated_flaw("a name that lies past the end of the string table"))?;
        let name = tail.split(|byte| *byte == 0).next().unwrap_or(tail);
        let left = self.budget.checked_sub(name.len());
        self.budget = left.ok_or_else(|| truncated_flaw("names that repeat each other without end"))?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }
}

/// Checks the first bytes, which identify the file type and the machine.
fn check_identification<'data, R: ReadRef<'data>>(data: R, length: u64) -> Result<(), ElfFlaw> {
    if length == 0 {
        return Err((RefusalReason::Empty, "a shared object", "an empty file".to_owned()));
    }
    let start =
        data.read_bytes_at(0, length.min(20)).map_err(|()| truncated_flaw("a file that cannot be read"))?;
    if !start.starts_with(&elf::ELFMAG[..start.len().min(4)]) {
        return Err((RefusalReason::NotASharedObject, "a shared object", file_format_name(start).to_owned()));
    }
    if start.len() < 20 {
        return Err(truncated_flaw(format!("{length} bytes, fewer than an ELF header has")));
    }
    let expected = if cfg!(target_endian = "little") { elf::ELFDATA2LSB } else { elf::ELFDATA2MSB };
    let wrong = |found: String| Err((RefusalReason::WrongArchitecture, THIS_MACHINE, found));
    if start[4] != elf::ELFCLASS64.0 {
        let number = [start[18], start[19]];
        let is_little = start[5] == elf::ELFDATA2LSB.0;
        let machine = if is_little { u16::from_le_bytes(number) } else { u16::from_be_bytes(number) };
        let known = MACHINES_OF_32_BITS.iter().find(|(number, _)| number.0 == machine);
        let of = known.map_or_else(String::new, |(_, name)| format!(" for {name}"));
        return wrong(format!("a 32-bit file{of}"));
    }
    if start[5] != expected.0 {
        return wrong("a file with the other byte order".to_owned());
    }
    if ![elf::ELFOSABI_NONE.0, elf::ELFOSABI_GNU.0].contains(&start[7]) {
        return wrong(format!("a file for another operating system (ELF OS/ABI {})", start[7]));
    }
    let machine = u16::from_ne_bytes([start[18], start[19]]);
    let known = MACHINES.iter().find(|(number, _)| number.0 == machine).map(|(_, name)| *name);
    if known != Some(std::env::consts::ARCH) {
        return wrong(
            known.map_or_else(|| format!("ELF machine {machine}"), |name| format!("a file for {name}")),
        );
    }
    Ok(())
}

const MACHINES: [(elf::Machine, &str); 6] = [
    (elf::EM_X86_64, "x86_64"),
    (elf::EM_AARCH64, "aarch64"),
    (elf::EM_RISCV, "riscv64"),
    (elf::EM_PPC64, "powerpc64"),
    (elf::EM_S390, "s390x"),
    (elf::EM_LOONGARCH, "loongarch64"),
];

const MACHINES_OF_32_BITS: [(elf::Machine, &str); 2] = [(elf::EM_386, "x86"), (elf::EM_ARM, "arm")];

const THIS_MACHINE: &str = const {
    if cfg!(target_arch = "x86_64") {
        "a 64-bit shared object for x86_64 Linux"
    } else if cfg!(target_arch = "aarch64") {
        "a 64-bit shared object for aarch64 Linux"
    } else {
        "a 64-bit shared object for this machine"
    }
};

fn file_format_name(start: &[u8]) -> &'static str {
    let known: [(&[u8], &str); 6] = [
        (b"!<arch>", "a static archive"),
        (b"MZ", "a Windows file"),
        (b"\xcf\xfa\xed\xfe", "a macOS file"),
        (b"version https://", "a Git LFS pointer, not the file it stands for"),
        (b"#!", "a script"),
        (b"/* GNU ld script", "a linker script"),
    ];
    known
        .iter()
        .find(|(magic, _)| start.starts_with(magic))
        .map_or("a file of another format", |(_, name)| name)
}
