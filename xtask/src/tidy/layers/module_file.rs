//! Parses the product code of one Rust file into declared modules and used paths.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, LitStr, UseTree};

use super::attribute_kind::{AttributeKind, attribute_kind};

/// The last segment of a glob import.
pub(super) const GLOB: &str = "*";

/// One file without its test code.
#[derive(Debug, Default)]
pub(super) struct ModuleFile {
    pub(super) modules: Vec<DeclaredModule>,
    pub(super) uses: Vec<PathUse>,
}

/// A module that the file declares, inline or as a separate file.
#[derive(Debug)]
pub(super) struct DeclaredModule {
    pub(super) line: usize,
    /// The path from the root of the crate.
    pub(super) path: Vec<String>,
    pub(super) is_inline: bool,
}

/// A path in product code that leads to an item of the same crate.
#[derive(Debug)]
pub(super) struct PathUse {
    pub(super) line: usize,
    /// The module that contains the path.
    pub(super) module: Vec<String>,
    /// The segments from the root of the crate.
    pub(super) path: Vec<String>,
    /// The name in the scope of the module, if a `use` declaration contains the path.
    pub(super) name: Option<String>,
}

impl ModuleFile {
    /// Parses the text of the module with the path `module`.
    ///
    /// # Errors
    ///
    /// The text is not valid Rust.
    pub(super) fn parse(text: &str, module: &[String]) -> syn::Result<Self> {
        let syntax = syn::parse_file(text)?;
        let mut reader = FileReader { module: module.to_vec(), ..FileReader::default() };
        reader.visit_file(&syntax);
        let FileReader { modules, uses, .. } = reader;
        let uses = uses.into_iter().filter_map(|found| found.into_path_use(&modules)).collect();
        Ok(Self { modules, uses })
    }
}

/// A path as the file writes it.
#[derive(Debug)]
struct WrittenPath {
    line: usize,
    module: Vec<String>,
    segments: Vec<String>,
    name: Option<String>,
}

impl WrittenPath {
    /// The path from the root of the crate; none if the path leads to another crate.
    fn into_path_use(self, declared: &[DeclaredModule]) -> Option<PathUse> {
        let Self { line, module, segments, name } = self;
        let mut path = module.clone();
        let mut rest = segments.as_slice();
        match rest.first()?.as_str() {
            "crate" => path.clear(),
            "self" => {}
            "super" => {
                path.pop();
            }
            child => {
                path.push(child.to_owned());
                if !declared.iter().any(|module| module.path == path) {
                    return None;
                }
            }
        }
        rest = &rest[1..];
        while let [first, others @ ..] = rest
            && first == "super"
        {
            path.pop();
            rest = others;
        }
        path.extend_from_slice(rest);
        Some(PathUse { line, module, path, name })
    }
}

#[derive(Default)]
struct FileReader {
    /// The module at the current place.
    module: Vec<String>,
    modules: Vec<DeclaredModule>,
    uses: Vec<WrittenPath>,
    /// Whether an attribute of the current node excludes the node from the product.
    is_excluded: bool,
    /// How many bodies contain the current place; imports in a body name nothing outside.
    block_depth: usize,
    is_in_attribute: bool,
}

impl FileReader {
    /// Visits a node that can have attributes, and forgets the node if it is test code.
    fn visit_product(&mut self, visit: impl FnOnce(&mut Self)) {
        let (modules, uses) = (self.modules.len(), self.uses.len());
        let is_parent_excluded = std::mem::take(&mut self.is_excluded);
        visit(self);
        if self.is_excluded {
            self.modules.truncate(modules);
            self.uses.truncate(uses);
        }
        self.is_excluded = is_parent_excluded;
    }

    fn push_path(&mut self, ident: &Ident, segments: Vec<String>, name: Option<String>) {
        let line = ident.span().start().line;
        self.uses.push(WrittenPath { line, module: self.module.clone(), segments, name });
    }

    /// Adds each path of a tree below `prefix`.
    fn push_tree(&mut self, tree: &UseTree, prefix: &[String], is_import: bool) {
        let with = |segment: String| [prefix, &[segment]].concat();
        let (ident, segments, name) = match tree {
            UseTree::Path(path) => {
                return self.push_tree(&path.tree, &with(identifier(&path.ident)), is_import);
            }
            UseTree::Group(group) => {
                for item in &group.items {
                    self.push_tree(item, prefix, is_import);
                }
                return;
            }
            UseTree::Glob(glob) => {
                let ident = Ident::new("_", glob.star_token.span);
                (ident, with(GLOB.to_owned()), GLOB.to_owned())
            }
            UseTree::Name(name) => {
                let segments = imported_segments(&name.ident, prefix);
                let own_name = segments.last().cloned().unwrap_or_default();
                (name.ident.clone(), segments, own_name)
            }
            UseTree::Rename(rename) => {
                let segments = imported_segments(&rename.ident, prefix);
                (rename.ident.clone(), segments, identifier(&rename.rename))
            }
        };
        self.push_path(&ident, segments, is_import.then_some(name));
    }

    /// Adds the paths in the tokens of a macro or of an attribute.
    fn push_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let [token, after @ ..] = rest {
            rest = after;
            match token {
                TokenTree::Ident(ident) if *ident == "pub" => {
                    // The path in `pub(in path)` uses nothing.
                    if let [TokenTree::Group(group), after @ ..] = rest
                        && group.delimiter() == Delimiter::Parenthesis
                    {
                        let inner = group.stream().into_iter().next();
                        if matches!(inner, Some(TokenTree::Ident(word)) if word == "in") {
                            rest = after;
                        }
                    }
                }
                TokenTree::Ident(ident) if is_path_start(ident) => {
                    rest = self.push_token_path(ident, rest);
                }
                TokenTree::Group(group) => self.push_tokens(group.stream()),
                TokenTree::Literal(literal) if self.is_in_attribute => {
                    if let Ok(text) = syn::parse2::<LitStr>(TokenTree::from(literal.clone()).into())
                    {
                        self.visit_lit_str(&text);
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// Adds the path that starts at `first`; returns the tokens after the path.
    fn push_token_path<'t>(&mut self, first: &Ident, mut rest: &'t [TokenTree]) -> &'t [TokenTree] {
        let mut segments = vec![identifier(first)];
        while let [TokenTree::Punct(one), TokenTree::Punct(two), next, after @ ..] = rest
            && (one.as_char(), two.as_char()) == (':', ':')
        {
            match next {
                TokenTree::Ident(ident) => segments.push(identifier(ident)),
                TokenTree::Punct(star) if star.as_char() == '*' => segments.push(GLOB.to_owned()),
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    if let Ok(tree) = syn::parse2::<UseTree>(TokenTree::from(group.clone()).into())
                    {
                        self.push_tree(&tree, &segments, false);
                        return after;
                    }
                    break;
                }
                TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => break,
            }
            rest = after;
        }
        if segments.len() > 1 {
            self.push_path(first, segments, None);
        }
        rest
    }
}

/// Visits each kind of node that can have attributes with `visit_product`.
macro_rules! visit_product_nodes {
    ($($visit:ident($node:ident);)*) => {
        $(fn $visit(&mut self, node: &'ast syn::$node) {
            self.visit_product(|reader| visit::$visit(reader, node));
        })*
    };
}

impl<'ast> Visit<'ast> for FileReader {
    visit_product_nodes! {
        visit_file(File);
        visit_item(Item);
        visit_impl_item(ImplItem);
        visit_trait_item(TraitItem);
        visit_foreign_item(ForeignItem);
        visit_field(Field);
        visit_variant(Variant);
        visit_generic_param(GenericParam);
        visit_fn_arg(FnArg);
        visit_stmt(Stmt);
        visit_expr(Expr);
        visit_arm(Arm);
        visit_field_value(FieldValue);
        visit_field_pat(FieldPat);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match attribute_kind(attribute) {
            AttributeKind::ExcludesNode => self.is_excluded = true,
            AttributeKind::UsesNothing => {}
            AttributeKind::Product => {
                self.is_in_attribute = true;
                visit::visit_attribute(self, attribute);
                self.is_in_attribute = false;
            }
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(identifier(&item.ident));
        self.modules.push(DeclaredModule {
            line: item.ident.span().start().line,
            path: self.module.clone(),
            is_inline: item.content.is_some(),
        });
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for attribute in &item.attrs {
            self.visit_attribute(attribute);
        }
        if item.leading_colon.is_none() {
            self.push_tree(&item.tree, &[], self.block_depth == 0);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.block_depth += 1;
        visit::visit_block(self, block);
        self.block_depth -= 1;
    }

    /// The path in `pub(in path)` uses nothing.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first()
            && path.segments.len() > 1
            && path.leading_colon.is_none()
            && is_path_start(&first.ident)
        {
            let segments = path.segments.iter().map(|segment| identifier(&segment.ident));
            self.push_path(&first.ident, segments.collect(), None);
        }
        visit::visit_path(self, path);
    }

    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.push_tokens(tokens.clone());
    }

    /// A string in an attribute can be a path, as in `#[serde(default = "crate::limits")]`.
    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        if self.is_in_attribute
            && let Ok(tokens) = text.parse::<TokenStream>()
        {
            self.push_tokens(tokens);
        }
    }
}

/// The name without the prefix of a raw identifier.
fn identifier(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Whether a path with this first segment leads to an item of the same crate.
fn is_path_start(ident: &Ident) -> bool {
    ["crate", "self", "super"].iter().any(|word| ident == word)
}

/// The segments of an import; `self` in a group stands for the prefix.
fn imported_segments(ident: &Ident, prefix: &[String]) -> Vec<String> {
    if ident == "self" && !prefix.is_empty() {
        return prefix.to_vec();
    }
    [prefix, &[identifier(ident)]].concat()
}
