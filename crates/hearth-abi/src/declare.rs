//! Declaring what is shared: a struct or a constant is written once, and can tell how C is to have it.

use std::cell::Cell;
use std::ffi::{c_char, c_void};

/// A struct as Rust has it, for C to be compared with.
pub(crate) struct Layout {
    /// C's name for it, without `struct`.
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) fields: Vec<Field>,
}

pub(crate) struct Field {
    /// The path to it in C: `slice`, or `scx.slice`.
    pub(crate) path: &'static str,
    pub(crate) offset: usize,
    /// C's name for its type.
    pub(crate) c_type: String,
}

impl Field {
    pub(crate) fn is_function(&self) -> bool {
        self.c_type.contains("(*)")
    }
}

/// A constant; of negative ones the bits.
pub(crate) struct Constant {
    pub(crate) name: &'static str,
    pub(crate) value: u64,
}

/// A type that C has as well.
pub(crate) trait CType {
    /// C's name for it.
    fn c() -> String;
}

macro_rules! c_types {
    ($($type:ty => $name:literal),+ $(,)?) => {
        $(impl $crate::declare::CType for $type {
            fn c() -> String {
                $name.to_owned()
            }
        })+
    };
}
pub(crate) use c_types;

c_types! {
    () => "void",
    bool => "bool",
    // A byte that is shared is text.
    u8 => "char",
    u16 => "u16",
    u32 => "u32",
    i32 => "s32",
    u64 => "u64",
    i64 => "s64",
    &mut bool => "bool *",
    *const c_char => "const char *",
    *const c_void => "const void *",
    *mut c_void => "void *",
}

impl<T: CType, const N: usize> CType for [T; N] {
    fn c() -> String {
        format!("{}[{N}]", T::c())
    }
}

impl<T: CType> CType for Cell<T> {
    fn c() -> String {
        T::c()
    }
}

macro_rules! callbacks {
    ($(($($argument:ident),*)),+) => {
        $(impl<R: CType, $($argument: CType),*> CType for Option<extern "C" fn($($argument),*) -> R> {
            fn c() -> String {
                function(R::c(), vec![$($argument::c()),*])
            }
        })+
    };
}

callbacks!((), (A), (A, B), (A, B, C));

/// C's name for a pointer to a function.
pub(crate) fn function(result: String, mut arguments: Vec<String>) -> String {
    if arguments.is_empty() {
        arguments.push(<()>::c());
    }
    format!("{result} (*)({})", arguments.join(", "))
}

/// `path_in_c!(field)`, or `path_in_c!(field "its.path.in.c")`.
macro_rules! path_in_c {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $path:literal) => {
        $path
    };
}
pub(crate) use path_in_c;

/// Declares a struct that C has too: `struct Rust = c_name { field: type, other @ "path.in.c": type }`.
macro_rules! shared {
    (
        $(#[$meta:meta])*
        pub struct $name:ident = $c:ident {
            $($(#[$field_meta:meta])* $vis:vis $field:ident $(@ $path:literal)? : $type:ty,)+
        }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        pub struct $name {
            $($(#[$field_meta])* $vis $field: $type,)+
        }

        impl $name {
            pub(crate) fn layout() -> $crate::declare::Layout {
                $crate::declare::Layout {
                    name: stringify!($c),
                    size: size_of::<$name>(),
                    fields: vec![$($crate::declare::Field {
                        path: $crate::declare::path_in_c!($field $($path)?),
                        offset: std::mem::offset_of!($name, $field),
                        c_type: <$type as $crate::declare::CType>::c(),
                    }),+],
                }
            }
        }

        impl $crate::declare::CType for $name {
            fn c() -> String {
                concat!("struct ", stringify!($c)).to_owned()
            }
        }
    };
}
pub(crate) use shared;

/// Declares a table of functions that C calls with a pointer to `K` in front of their arguments.
macro_rules! functions {
    (
        $(#[$meta:meta])*
        pub struct $name:ident<K> = $c:ident {
            $($(#[$field_meta:meta])* $field:ident: fn($($argument:ty),*) $(-> $result:ty)?,)+
        }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        pub struct $name<K> {
            /// The first argument of each.
            pub this: *const K,
            $($(#[$field_meta])* pub $field: extern "C" fn(&K, $($argument),*) $(-> $result)?,)+
        }

        impl $name<()> {
            pub(crate) fn layout() -> $crate::declare::Layout {
                use $crate::declare::CType;
                $crate::declare::Layout {
                    name: stringify!($c),
                    size: size_of::<Self>(),
                    fields: vec![
                        $crate::declare::Field {
                            path: "self",
                            offset: std::mem::offset_of!($name<()>, this),
                            c_type: <*mut std::ffi::c_void>::c(),
                        },
                        $($crate::declare::Field {
                            path: stringify!($field),
                            offset: std::mem::offset_of!($name<()>, $field),
                            c_type: $crate::declare::function(
                                <$crate::declare::or_void!($($result)?)>::c(),
                                vec![<*mut std::ffi::c_void>::c(), $(<$argument>::c()),*],
                            ),
                        },)+
                    ],
                }
            }
        }

        impl $crate::declare::CType for $name<()> {
            fn c() -> String {
                concat!("struct ", stringify!($c)).to_owned()
            }
        }
    };
}
pub(crate) use functions;

macro_rules! or_void {
    () => {
        ()
    };
    ($type:ty) => {
        $type
    };
}
pub(crate) use or_void;

/// Declares constants that C has too, `C_NAME => NAME: type = value;`, and a function that lists them.
macro_rules! constants {
    ($list:ident { $($(#[$meta:meta])* $c:ident => $name:ident: $type:ty = $value:expr;)+ }) => {
        $($(#[$meta])* pub const $name: $type = $value;)+

        pub(crate) fn $list() -> Vec<$crate::declare::Constant> {
            vec![$($crate::declare::Constant { name: stringify!($c), value: $name as u64 }),+]
        }
    };
}
pub(crate) use constants;
