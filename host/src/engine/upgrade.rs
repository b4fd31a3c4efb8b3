//! What another version of a processor changes in a checkpoint: told before it runs (`inspect --against`), said when it
//! takes over, and recorded with its first batch.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::QueryError;
use super::operator::{Operator, OperatorPlan};
use super::recovery::refuse_other_steps;
use super::settings::QuerySettings;
use super::setup::{self, Chain, Schemas};
use super::view::QueryView;
use crate::record::{Difference, FieldChange, widens};
use crate::state::{Catalog, Outlook, StateLimits, Store, VariableKind, VariableOutlook, VariableSpec};

/// A processor that took over from another one, or changed its state variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgrade {
    /// What ran the batch before.
    pub from: String,
    /// What became of the state variables; those that go on as they were are left out.
    pub variables: Vec<VariableReport>,
}

/// What becomes of a state variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableReport {
    /// Its name.
    pub name: String,
    /// Its kind: as declared, or as stored if it is not.
    pub kind: VariableKind,
    /// In a word.
    pub change: VariableChange,
    /// What is different in its value schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldReport>,
    /// Its TTL, if that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<TtlReport>,
    /// What is lost, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Why the processor cannot go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
}

/// What becomes of a state variable, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariableChange {
    /// It begins empty.
    New,
    /// It goes on as it was.
    Unchanged,
    /// It goes on; only its TTL is another, or its rows have the same bytes in the new schema.
    Changed,
    /// It goes on, and its rows are converted when they are read.
    Converted,
    /// It is no longer declared, and keeps its state.
    Undeclared,
    /// It goes, with its state.
    Dropped,
    /// The processor cannot go on with it.
    Refused,
}

impl VariableChange {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Unchanged => "unchanged",
            Self::Changed => "changed",
            Self::Converted => "converted",
            Self::Undeclared => "undeclared",
            Self::Dropped => "dropped",
            Self::Refused => "refused",
        }
    }
}

/// A field that is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldReport {
    /// Where; empty for the row as a whole.
    pub path: String,
    /// `added`, `removed`, `widened`, `nullable` or `reordered`.
    pub change: String,
    /// Its type before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Its type now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// All of it, for a person.
    pub text: String,
}

/// A TTL that is another. It holds for what is written from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TtlReport {
    /// In the checkpoint, in milliseconds; None: for ever.
    pub from_ms: Option<u64>,
    /// Now.
    pub to_ms: Option<u64>,
}

/// Why a processor cannot go on with a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The stable code.
    pub code: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// How the processors of a query fit a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The last committed batch.
    pub last_batch: Option<u64>,
    /// Why the query cannot go on with its steps or settings.
    pub refused: Option<Refused>,
    /// The steps.
    pub steps: Vec<StepComparison>,
}

/// How the processor of a step fits a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepComparison {
    /// The step's name.
    pub step: String,
    /// What ran the last batch.
    pub processor_before: Option<String>,
    /// What would go on.
    pub processor: String,
    /// The state variables: those declared in their order, then the others.
    #[serde(skip)]
    pub variables: Vec<VariableReport>,
}

impl Comparison {
    /// Compares a checkpoint, whose state is in `store`, with a query. Runs `init` on throw-away instances.
    ///
    /// # Errors
    /// Settings, input and processors that do not fit each other; a checkpoint that cannot be read.
    pub fn of(
        view: &QueryView,
        store: &dyn Store,
        settings: &QuerySettings,
        operators: &[Arc<dyn Operator>],
        schemas: &Schemas,
    ) -> Result<Self, QueryError> {
        let Chain { steps: chain, .. } = setup::chain(settings, operators, schemas, view.metadata())?;
        let history = view.history();
        let refused = refuse_other_steps(settings, history, &chain).err();
        let catalog = Catalog::load(store)?;
        let before = history.last.iter().flat_map(|last| &last.steps);
        let mut before = before.map(|step| Some(step.processor.clone())).chain(std::iter::repeat(None));
        let steps = chain.iter().map(|setup| {
            let OperatorPlan { variables, dropped_variables, .. } = setup.plan.as_ref();
            let outlook = catalog.outlook(setup.info.step, variables, dropped_variables, &setup.settings.state)?;
            Ok(StepComparison {
                step: setup.settings.name.clone(),
                processor_before: before.next().flatten(),
                processor: setup.operator.identity(),
                variables: reports(outlook, variables),
            })
        });
        Ok(Self {
            last_batch: history.last.as_ref().map(|last| last.batch_id),
            refused: refused.map(|error| Refused::of(error.code(), &error)),
            steps: steps.collect::<Result<_, QueryError>>()?,
        })
    }

    /// Whether the query can go on with the checkpoint.
    #[must_use]
    pub fn fits(&self) -> bool {
        let mut variables = self.steps.iter().flat_map(|step| &step.variables);
        self.refused.is_none() && variables.all(|variable| variable.refused.is_none())
    }

    /// Whether what would go on is what ran before.
    #[must_use]
    pub fn is_the_same(&self) -> bool {
        self.steps.iter().all(|step| step.processor_before.as_ref() == Some(&step.processor))
    }
}

/// The variables of a step that do not go on as they were.
pub(super) fn changed(
    catalog: &Catalog,
    step: u8,
    plan: &OperatorPlan,
    limits: &StateLimits,
) -> Result<Vec<VariableReport>, QueryError> {
    let mut outlook = catalog.outlook(step, &plan.variables, &plan.dropped_variables, limits)?;
    outlook.retain(|variable| !matches!(variable.outlook, Outlook::Undeclared { before: true }));
    let mut reports = reports(outlook, &plan.variables);
    reports.retain(|variable| variable.change != VariableChange::Unchanged);
    Ok(reports)
}

impl Refused {
    fn of(code: &str, error: &dyn std::fmt::Display) -> Self {
        Self { code: code.to_owned(), message: error.to_string() }
    }
}

fn reports(outlook: Vec<VariableOutlook>, declared: &[VariableSpec]) -> Vec<VariableReport> {
    let ttl_ms: HashMap<_, _> = declared.iter().map(|spec| (spec.name.as_str(), spec.ttl_ms)).collect();
    outlook.into_iter().map(|variable| report(variable, &ttl_ms)).collect()
}

fn report(variable: VariableOutlook, declared_ttl_ms: &HashMap<&str, Option<u64>>) -> VariableReport {
    let VariableOutlook { name, kind, outlook } = variable;
    let to_ms = declared_ttl_ms.get(name.as_str()).copied().flatten();
    let mut report = VariableReport {
        name,
        kind,
        change: VariableChange::Unchanged,
        fields: Vec::new(),
        ttl: None,
        lost: Vec::new(),
        refused: None,
    };
    match outlook {
        Outlook::New => report.change = VariableChange::New,
        Outlook::Kept { differences, converted, ttl_before_ms } => {
            report.ttl = (ttl_before_ms != to_ms).then_some(TtlReport { from_ms: ttl_before_ms, to_ms });
            report.change = match (converted, differences.is_empty() && report.ttl.is_none()) {
                (true, _) => VariableChange::Converted,
                (false, true) => VariableChange::Unchanged,
                (false, false) => VariableChange::Changed,
            };
            report.lost = lost(&differences);
            report.fields = differences.iter().map(FieldReport::of).collect();
        }
        Outlook::Undeclared { .. } => report.change = VariableChange::Undeclared,
        Outlook::Dropped => {
            report.change = VariableChange::Dropped;
            report.lost = vec!["all that it holds is lost".to_owned()];
        }
        Outlook::Refused(error) => {
            report.change = VariableChange::Refused;
            report.refused = Some(Refused::of(error.code(), &error));
        }
    }
    report
}

impl FieldReport {
    fn of(difference: &Difference) -> Self {
        let (change, from, to) = match &difference.change {
            FieldChange::Added { to } => ("added", None, Some(to)),
            FieldChange::Removed { from } => ("removed", Some(from), None),
            FieldChange::Widened { from, to } => ("widened", Some(from), Some(to)),
            FieldChange::MadeNullable => ("nullable", None, None),
            FieldChange::Reordered => ("reordered", None, None),
            FieldChange::Refused { from, to, .. } => ("refused", from.as_ref(), to.as_ref()),
        };
        Self {
            path: difference.path.clone(),
            change: change.to_owned(),
            from: from.map(ToString::to_string),
            to: to.map(ToString::to_string),
            text: difference.to_string(),
        }
    }
}

/// What becomes unreadable, and where a rename may be meant.
fn lost(differences: &[Difference]) -> Vec<String> {
    let removed = differences.iter().filter_map(|difference| match &difference.change {
        FieldChange::Removed { from } => Some((&difference.path, from)),
        _ => None,
    });
    let sentence = |(path, from): (&String, _)| {
        let renamed = differences.iter().find_map(|other| match &other.change {
            FieldChange::Added { to } if level(&other.path) == level(path) && widens(from, to) => Some(&other.path),
            _ => None,
        });
        match renamed {
            None => format!("what is stored in {path} is lost"),
            Some(new) => format!("what is stored in {path} is lost, also if {new} is the same under a new name"),
        }
    };
    removed.map(sentence).collect()
}

fn level(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(level, _)| level)
}
