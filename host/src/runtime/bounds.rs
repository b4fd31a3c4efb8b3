//! How much there may be of everything in a component that a stranger uploads, counted before it is compiled.
//!
//! wasmtime has bounds of its own, made for a host that trusts its programs a little more: a million functions, a hundred
//! thousand segments. What compiling costs in memory and time is bounded by the process that does it; the counts are there so
//! that a bomb is told what it is, at the cost of one pass over its bytes.

use wasmparser::{
    BinaryReaderError, ComponentDefinedType, ComponentType, ComponentTypeDeclaration, ElementItems, Encoding,
    FromReader, FunctionBody, InstanceTypeDeclaration, Parser, Payload, SectionLimited,
};

use super::error::ComponentError;

/// How much of everything there is in a component, with all that is nested in it; and how much there may be. Numbers are
/// those that the file claims: whether they are true is found out by compiling.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// Components within components, and types within types.
    pub depth: u64,
    /// Core modules.
    pub modules: u64,
    /// Components.
    pub components: u64,
    /// Instances, of modules and components.
    pub instances: u64,
    /// Types, of modules and components, with those declared inside of types.
    pub types: u64,
    /// Fields, cases, names or parameters of the one type that has most.
    pub type_items: u64,
    /// Imports, of modules and components.
    pub imports: u64,
    /// Exports, of modules and components.
    pub exports: u64,
    /// Bytes of the longest name of an import or export.
    pub name_bytes: u64,
    /// Aliases and functions between modules and components.
    pub adapters: u64,
    /// Functions with a body.
    pub functions: u64,
    /// Bytes of the longest body. Compiling takes more than proportionally longer.
    pub function_bytes: u64,
    /// Locals of the function that has most.
    pub locals: u64,
    /// Linear memories.
    pub memories: u64,
    /// What all memories have at the start, in bytes.
    pub memory_bytes: u64,
    /// Tables.
    pub tables: u64,
    /// What all tables have at the start, in elements.
    pub table_elements: u64,
    /// Globals.
    pub globals: u64,
    /// Segments of tables.
    pub element_segments: u64,
    /// Elements of all segments.
    pub elements: u64,
    /// Segments of memory.
    pub data_segments: u64,
    /// Custom sections.
    pub custom_sections: u64,
    /// Bytes of all custom sections.
    pub custom_bytes: u64,
}

impl Default for Bounds {
    /// Two to ten times of what components in the four languages have, the largest of which carry CPython.
    fn default() -> Self {
        Self {
            depth: 8,
            modules: 64,
            components: 128,
            instances: 512,
            types: 20_000,
            type_items: 1_000,
            imports: 10_000,
            exports: 20_000,
            name_bytes: 4_096,
            adapters: 20_000,
            functions: 100_000,
            function_bytes: 1 << 20,
            locals: 10_000,
            memories: 8,
            memory_bytes: 128 << 20,
            tables: 64,
            table_elements: 100_000,
            globals: 10_000,
            element_segments: 10_000,
            elements: 200_000,
            data_segments: 200_000,
            custom_sections: 1_000,
            custom_bytes: 32 << 20,
        }
    }
}

const PAGE_BYTES: u64 = 64 << 10;

impl Bounds {
    const NONE: Self = Self {
        depth: 0,
        modules: 0,
        components: 0,
        instances: 0,
        types: 0,
        type_items: 0,
        imports: 0,
        exports: 0,
        name_bytes: 0,
        adapters: 0,
        functions: 0,
        function_bytes: 0,
        locals: 0,
        memories: 0,
        memory_bytes: 0,
        tables: 0,
        table_elements: 0,
        globals: 0,
        element_segments: 0,
        elements: 0,
        data_segments: 0,
        custom_sections: 0,
        custom_bytes: 0,
    };

    /// How much of everything there is in a component.
    ///
    /// # Errors
    /// [`ComponentError::Invalid`] where it cannot be read.
    pub fn count(name: &str, component: &[u8]) -> Result<Self, ComponentError> {
        let mut counts = Self::NONE;
        counts.add(component).map_err(|error| invalid(name, &error))?;
        Ok(counts)
    }

    /// Refuses a component that has more of something than it may.
    ///
    /// # Errors
    /// [`ComponentError::OutOfBounds`] for the first that it has too much of; [`ComponentError::Invalid`] where it cannot be
    /// read.
    pub fn check(&self, name: &str, component: &[u8]) -> Result<(), ComponentError> {
        let counts = Self::count(name, component)?;
        let over = counts.named().into_iter().zip(self.named()).find(|((_, found), (_, most))| found > most);
        match over {
            Some(((bound, found), (_, most))) => {
                Err(ComponentError::OutOfBounds { name: name.to_owned(), bound, found, most })
            }
            None => Ok(()),
        }
    }

    /// What it imports and exports itself, not what is nested in it: enough to refuse it before it is compiled.
    pub(super) fn interfaces(name: &str, component: &[u8]) -> Result<(Vec<String>, Vec<String>), ComponentError> {
        let (mut imports, mut exports) = (Vec::new(), Vec::new());
        let mut depth: u64 = 0;
        for payload in Parser::new(0).parse_all(component) {
            match payload.map_err(|error| invalid(name, &error))? {
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 1 => {
                    each(section, |import| imports.push(import.name.name.to_owned()))
                        .map_err(|error| invalid(name, &error))?;
                }
                Payload::ComponentExportSection(section) if depth == 1 => {
                    each(section, |export| exports.push(export.name.name.to_owned()))
                        .map_err(|error| invalid(name, &error))?;
                }
                _ => {}
            }
        }
        Ok((imports, exports))
    }

    /// Each number with its name.
    pub fn named(&self) -> [(&'static str, u64); 23] {
        [
            ("depth", self.depth),
            ("modules", self.modules),
            ("components", self.components),
            ("instances", self.instances),
            ("types", self.types),
            ("type_items", self.type_items),
            ("imports", self.imports),
            ("exports", self.exports),
            ("name_bytes", self.name_bytes),
            ("adapters", self.adapters),
            ("functions", self.functions),
            ("function_bytes", self.function_bytes),
            ("locals", self.locals),
            ("memories", self.memories),
            ("memory_bytes", self.memory_bytes),
            ("tables", self.tables),
            ("table_elements", self.table_elements),
            ("globals", self.globals),
            ("element_segments", self.element_segments),
            ("elements", self.elements),
            ("data_segments", self.data_segments),
            ("custom_sections", self.custom_sections),
            ("custom_bytes", self.custom_bytes),
        ]
    }

    fn add(&mut self, component: &[u8]) -> Result<(), BinaryReaderError> {
        let mut depth: u64 = 0;
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::Version { encoding, .. } => {
                    depth += 1;
                    self.depth = self.depth.max(depth);
                    match encoding {
                        Encoding::Module => self.modules += 1,
                        Encoding::Component => self.components += 1,
                    }
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::TypeSection(types) => self.types += u64::from(types.count()),
                Payload::CoreTypeSection(types) => self.types += u64::from(types.count()),
                Payload::ComponentTypeSection(types) => each(types, |found| self.add_type(&found, depth))?,
                Payload::ImportSection(imports) => {
                    self.imports += u64::from(imports.count());
                    for import in imports.into_imports() {
                        let import = import?;
                        self.add_name(import.module);
                        self.add_name(import.name);
                    }
                }
                Payload::ComponentImportSection(imports) => {
                    self.imports += u64::from(imports.count());
                    each(imports, |import| self.add_name(import.name.name))?;
                }
                Payload::ExportSection(exports) => {
                    self.exports += u64::from(exports.count());
                    each(exports, |export| self.add_name(export.name))?;
                }
                Payload::ComponentExportSection(exports) => {
                    self.exports += u64::from(exports.count());
                    each(exports, |export| self.add_name(export.name.name))?;
                }
                Payload::InstanceSection(instances) => self.instances += u64::from(instances.count()),
                Payload::ComponentInstanceSection(instances) => self.instances += u64::from(instances.count()),
                Payload::ComponentAliasSection(aliases) => self.adapters += u64::from(aliases.count()),
                Payload::ComponentCanonicalSection(functions) => self.adapters += u64::from(functions.count()),
                Payload::FunctionSection(functions) => self.functions += u64::from(functions.count()),
                Payload::CodeSectionEntry(body) => self.add_body(&body)?,
                Payload::MemorySection(memories) => {
                    self.memories += u64::from(memories.count());
                    each(memories, |memory| {
                        self.memory_bytes = self.memory_bytes.saturating_add(memory.initial.saturating_mul(PAGE_BYTES));
                    })?;
                }
                Payload::TableSection(tables) => {
                    self.tables += u64::from(tables.count());
                    each(tables, |table| self.table_elements = self.table_elements.saturating_add(table.ty.initial))?;
                }
                Payload::GlobalSection(globals) => self.globals += u64::from(globals.count()),
                Payload::ElementSection(segments) => {
                    self.element_segments += u64::from(segments.count());
                    each(segments, |segment| {
                        self.elements += match segment.items {
                            ElementItems::Functions(items) => u64::from(items.count()),
                            ElementItems::Expressions(_, items) => u64::from(items.count()),
                        };
                    })?;
                }
                Payload::DataSection(segments) => self.data_segments += u64::from(segments.count()),
                Payload::CustomSection(section) => {
                    self.custom_sections += 1;
                    self.custom_bytes += section.data().len() as u64;
                }
                // Sections that come once and have no size, and those that this host does not accept.
                _ => {}
            }
        }
        Ok(())
    }

    fn add_name(&mut self, name: &str) {
        self.name_bytes = self.name_bytes.max(name.len() as u64);
    }

    fn add_body(&mut self, body: &FunctionBody<'_>) -> Result<(), BinaryReaderError> {
        self.function_bytes = self.function_bytes.max(body.range().len() as u64);
        let mut locals: u64 = 0;
        for local in body.get_locals_reader()? {
            locals += u64::from(local?.0);
        }
        self.locals = self.locals.max(locals);
        Ok(())
    }

    fn add_type(&mut self, found: &ComponentType<'_>, depth: u64) {
        self.types += 1;
        self.depth = self.depth.max(depth);
        let items = match found {
            ComponentType::Defined(defined) => items(defined),
            ComponentType::Func(function) => function.params.len(),
            ComponentType::Component(declarations) => {
                declarations.iter().for_each(|declaration| self.add_declaration(declaration, depth + 1));
                declarations.len()
            }
            ComponentType::Instance(declarations) => {
                declarations.iter().for_each(|declaration| self.add_instance_declaration(declaration, depth + 1));
                declarations.len()
            }
            ComponentType::Resource { .. } => 0,
        };
        self.type_items = self.type_items.max(items as u64);
    }

    fn add_declaration(&mut self, declaration: &ComponentTypeDeclaration<'_>, depth: u64) {
        match declaration {
            ComponentTypeDeclaration::Type(found) => self.add_type(found, depth),
            ComponentTypeDeclaration::CoreType(_) => self.types += 1,
            ComponentTypeDeclaration::Import(import) => self.add_name(import.name.name),
            ComponentTypeDeclaration::Export { name, .. } => self.add_name(name.name),
            ComponentTypeDeclaration::Alias(_) => {}
        }
    }

    fn add_instance_declaration(&mut self, declaration: &InstanceTypeDeclaration<'_>, depth: u64) {
        match declaration {
            InstanceTypeDeclaration::Type(found) => self.add_type(found, depth),
            InstanceTypeDeclaration::CoreType(_) => self.types += 1,
            InstanceTypeDeclaration::Export { name, .. } => self.add_name(name.name),
            InstanceTypeDeclaration::Alias(_) => {}
        }
    }
}

fn invalid(name: &str, error: &BinaryReaderError) -> ComponentError {
    ComponentError::Invalid { name: name.to_owned(), reason: error.to_string() }
}

fn items(defined: &ComponentDefinedType<'_>) -> usize {
    match defined {
        ComponentDefinedType::Record(fields) => fields.len(),
        ComponentDefinedType::Variant(cases) => cases.len(),
        ComponentDefinedType::Tuple(types) => types.len(),
        ComponentDefinedType::Flags(names) | ComponentDefinedType::Enum(names) => names.len(),
        _ => 1,
    }
}

/// Does something with each part of a section.
fn each<'a, T: FromReader<'a>>(
    section: SectionLimited<'a, T>,
    mut with: impl FnMut(T),
) -> Result<(), BinaryReaderError> {
    for part in section {
        with(part?);
    }
    Ok(())
}
