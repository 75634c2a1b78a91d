package workspace

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Service is the operations that only look at files.
type Service struct {
	tree     *Tree
	limits   contract.Limits
	projects Projects
}

// NewService gives the operations on a tree. Without projects, arguments that name one give
// NOT_SUPPORTED.
func NewService(tree *Tree, limits contract.Limits, projects Projects) *Service {
	return &Service{tree: tree, limits: limits, projects: projects}
}

// Ops are the operations, in the order of the catalogue. They can be shown without a
// service.
func (s *Service) Ops() []contract.Op {
	return []contract.Op{s.listFiles(), s.readFiles(), s.readImage(), s.readInstructions()}
}

// Projects reaches other workspaces of the owner for reading.
type Projects interface {
	// View gives a project the caller may read: FORBIDDEN for any other id, known or not,
	// NOT_FOUND for one that cannot be reached now. The view lasts until ctx ends.
	View(ctx context.Context, caller contract.Principal, id string) (View, error)
}

// View is another workspace, open for reading.
type View struct {
	Tree    *Tree
	Project Project
}

// Project says which workspace an answer is from when it is not the one of the call.
type Project struct {
	ProjectID      string `json:"projectId"`
	DisplayName    string `json:"displayName"`
	WorkspaceID    string `json:"workspaceId"`
	Availability   string `json:"availability"`
	Available      bool   `json:"available"`
	StatusText     string `json:"statusText"`
	WorkspaceEpoch string `json:"workspaceEpoch"`
	ReadOnly       bool   `json:"readOnly" doc:"Always true: hashes from another project are evidence and no ground for a change."`
	SourceHash     string `json:"sourceHash"`
}

// from gives the tree a call is about.
func (s *Service) from(ctx context.Context, c contract.Call, projectID string) (*Tree, *Project, error) {
	if projectID == "" {
		return s.tree, nil, nil
	}
	if !contract.IsProjectID(projectID) {
		return nil, nil, fault.New(contract.InvalidInput, "projectId has not the form of a project's id").
			WithHint("project_overview lists the projects with their ids")
	}
	if s.projects == nil {
		return nil, nil, fault.New(contract.NotSupported, "this server serves one workspace only").WithHint("leave projectId out")
	}
	v, err := s.projects.View(ctx, c.Principal, projectID)
	if err != nil {
		return nil, nil, err
	}
	return v.Tree, &v.Project, nil
}
