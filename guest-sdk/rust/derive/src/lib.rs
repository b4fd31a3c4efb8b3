//! `#[derive(Row)]` of the Tidemill SDK. Documented at the trait, `tidemill::Row`.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Field, Fields, LitStr, parse_macro_input};

/// Makes a struct with named fields a row, and a column of type STRUCT.
#[proc_macro_derive(Row, attributes(row))]
pub fn derive_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(input: &DeriveInput) -> syn::Result<Tokens> {
    let fields = named_fields(input)?;
    let type_name = &input.ident;
    let count = fields.len();
    let names = fields.iter().map(column_name).collect::<syn::Result<Vec<_>>>()?;
    refuse_same_names(&fields, &names)?;
    let idents: Vec<_> = fields.iter().map(|field| &field.ident).collect();
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    let places = 0..count;
    let places_again = 0..count;

    Ok(quote! {
        #[automatically_derived]
        impl ::tidemill::Row for #type_name {
            const COLUMNS: usize = #count;
            const NAMED: bool = true;

            fn columns(depth: usize) -> ::tidemill::Result<::std::vec::Vec<::tidemill::row::ColumnSchema>> {
                ::std::result::Result::Ok(::std::vec![#(::tidemill::row::ColumnSchema::of::<#types>(#names, depth)?),*])
            }

            #[inline]
            fn read_row(row: ::tidemill::codec::RowReader<'_>) -> ::tidemill::Result<Self> {
                ::std::result::Result::Ok(Self {
                    #(#idents: <#types as ::tidemill::Column>::read(row, #places).map_err(|error| error.at(#names))?),*
                })
            }

            #[inline]
            fn write_row(&self, row: &mut ::tidemill::codec::RowWriter<'_>) -> ::tidemill::Result<()> {
                #(<#types as ::tidemill::Column>::write(&self.#idents, row, #places_again).map_err(|error| error.at(#names))?;)*
                ::std::result::Result::Ok(())
            }
        }

        #[automatically_derived]
        impl ::tidemill::Column for #type_name {
            fn data_type(depth: usize) -> ::tidemill::Result<::std::string::String> {
                ::tidemill::row::nested_row::data_type::<Self>(depth)
            }

            #[inline]
            fn read(row: ::tidemill::codec::RowReader<'_>, column: usize) -> ::tidemill::Result<Self> {
                ::tidemill::row::nested_row::read(row, column)
            }

            #[inline]
            fn write(&self, row: &mut ::tidemill::codec::RowWriter<'_>, column: usize) -> ::tidemill::Result<()> {
                ::tidemill::row::nested_row::write(self, row, column)
            }
        }
    })
}

fn named_fields(input: &DeriveInput) -> syn::Result<Vec<&Field>> {
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new(
            input.generics.span(),
            "a row has one schema: `Row` cannot be derived for a generic type",
        ));
    }
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new(input.span(), "`Row` is derived for structs with named fields"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(syn::Error::new(
            input.span(),
            "fields become columns, so they need names; a tuple is a row without deriving",
        ));
    };
    if fields.named.is_empty() {
        return Err(syn::Error::new(input.span(), "a row has at least one column"));
    }
    Ok(fields.named.iter().collect())
}

/// The field's name, or that of `#[row(rename = "...")]`.
fn column_name(field: &&Field) -> syn::Result<String> {
    let mut renamed = None;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("row")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("rename") {
                return Err(meta.error("unknown attribute; there is `#[row(rename = \"column\")]`"));
            }
            renamed = Some(meta.value()?.parse::<LitStr>()?.value());
            Ok(())
        })?;
    }
    let ident = field.ident.as_ref().map(|ident| ident.to_string()).unwrap_or_default();
    // `r#type` is the field of a column `type`.
    Ok(renamed.unwrap_or_else(|| ident.strip_prefix("r#").map(str::to_owned).unwrap_or(ident)))
}

fn refuse_same_names(fields: &[&Field], names: &[String]) -> syn::Result<()> {
    for (at, (field, name)) in fields.iter().zip(names).enumerate() {
        if names.iter().take(at).any(|earlier| earlier.eq_ignore_ascii_case(name)) {
            return Err(syn::Error::new(
                field.span(),
                format!("two columns are named `{name}`; upper and lower case do not tell them apart"),
            ));
        }
    }
    Ok(())
}
