//! What every route has in common: problems, bodies, answers, paging, who may come in.

mod answer;
mod body;
mod creation;
mod enter;
mod guard;
mod moment;
mod paging;
mod precondition;
mod problem;
mod status;
mod wait;

pub use answer::Answer;
pub use body::{Content, Input};
pub use creation::create_once;
pub use enter::{Entry, enter};
pub use guard::{Names, guard, internal_error};
pub use moment::moment;
pub use paging::{List, Paging};
pub use precondition::{IfMatch, etag};
pub use problem::Problem;
pub use status::{STATUS, status_of};
pub use wait::Wait;
