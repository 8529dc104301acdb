"""Tables: pandas, Polars and Arrow in and out of columns, and the declarations that run over them."""
