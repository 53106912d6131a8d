package surface

// dotnetEntries returns the rows of this file. .NET and MSBuild.
func dotnetEntries() []Entry {
	return []Entry{
		{
			ID:        "dotnet-directory-build",
			Title:     "MSBuild files that apply to every project",
			Ecosystem: "dotnet",
			Patterns: anywhere(
				"Directory.Build.props", "Directory.Build.targets", "Directory.Build.rsp",
				"Directory.Packages.props", "Directory.Solution.props", "Directory.Solution.targets",
				"MSBuild.rsp", "before.*.sln.targets", "after.*.sln.targets",
			),
			Trigger:  "dotnet build/test/restore, IDE design-time build on open",
			Why:      "what counts: any target, Exec task, inline tasks; picked up from any parent folder; sometimes",
			Source:   "https://learn.microsoft.com/visualstudio/msbuild/customize-by-directory",
			Balanced: Review,
		},
		{
			ID:        "dotnet-project",
			Title:     "MSBuild projects",
			Ecosystem: "dotnet",
			Patterns: anywhere(
				"*.csproj", "*.fsproj", "*.vbproj", "*.vcxproj", "*.proj", "*.props", "*.targets",
				"*.sln", "*.slnx", "*.csproj.user", "*.shproj", "*.projitems",
			),
			Trigger:  "dotnet anything, IDE load",
			Why:      "what counts: targets, PreBuildEvent, Exec, UsingTask, analyzers, source generators; edited with dependencies: judge by key",
			Source:   "https://learn.microsoft.com/visualstudio/msbuild/exec-task",
			Balanced: Review,
			Keys: []string{
				"Target", "Exec", "UsingTask", "PreBuildEvent", "PostBuildEvent", "Import",
				"Analyzer", "PackageReference of analyzers/generators", "RunCommand", "RunArguments",
				"Sdk", "COMFileReference",
			},
		},
		{
			ID:        "dotnet-nuget-config",
			Title:     "nuget's configuration",
			Ecosystem: "dotnet",
			Patterns:  anywhere("nuget.config", "NuGet.config", "NuGet.Config", "packages.lock.json"),
			Trigger:   "dotnet restore, IDE open",
			Why:       "what counts: packageSources, credential plugins; an agent rarely has to change it",
			Source:    "https://learn.microsoft.com/nuget/reference/nuget-config-file",
			Balanced:  Review,
			Keys: []string{
				"packageSources", "packageSourceMapping", "config.*", "fallbackPackageFolders",
			},
		},
		{
			ID:        "dotnet-global-json",
			Title:     "the .NET SDK",
			Ecosystem: "dotnet",
			Patterns:  anywhere("global.json"),
			Trigger:   "any dotnet command",
			Why:       "what counts: sdk.version, sdk.paths, msbuild-sdks, test.runner; an agent rarely has to change it",
			Source:    "https://learn.microsoft.com/dotnet/core/tools/global-json",
			Balanced:  Review,
			Keys: []string{
				"sdk.paths", "msbuild-sdks", "sdk.version", "sdk.rollForward",
			},
		},
		{
			ID:        "dotnet-tools",
			Title:     ".NET tools",
			Ecosystem: "dotnet",
			Patterns:  anywhere(".config/dotnet-tools.json", "dotnet-tools.json"),
			Trigger:   "dotnet tool restore/run",
			Why:       "what counts: tools.*; an agent rarely has to change it",
			Source:    "https://learn.microsoft.com/dotnet/core/tools/local-tools-how-to-use",
			Balanced:  Review,
		},
		{
			ID:        "dotnet-launch",
			Title:     "launch and test settings of .NET",
			Ecosystem: "dotnet",
			Patterns: anywhere(
				"Properties/launchSettings.json", "*.runsettings", "omnisharp.json", "build.cake",
				"build.fsx", "*.cake", "paket.dependencies",
			),
			Trigger:  "dotnet run/test, F5, dotnet cake",
			Why:      "what counts: executablePath, commandLineArgs, environmentVariables, DataCollectors, omnisharp RoslynExtensionsOptions; .cake/.fsx whole file; sometimes",
			Source:   "https://learn.microsoft.com/aspnet/core/fundamentals/environments",
			Balanced: Review,
			Keys: []string{
				"profiles.*.{executablePath,commandLineArgs,environmentVariables}", "DataCollectors",
				"RoslynExtensionsOptions.LocationPaths",
			},
		},
	}
}
